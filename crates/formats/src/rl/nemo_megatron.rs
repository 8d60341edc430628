//! A NeMo-RL policy under Megatron: the keys of `policy.megatron_cfg`.

use super::super::leaves::Leaves;
use super::common::lack_yes;
use crate::{Effect, Origin};
use shardscope_plan::{Field, Software};

pub(super) fn read(leaves: &mut Leaves<'_>) {
    leaves.pass_below(&["policy.dtensor_cfg."]);
    leaves.pass("policy.megatron_cfg.enabled");
    let named: Vec<(String, Field)> = leaves
        .all()
        .iter()
        .filter_map(|leaf| {
            let rest = leaf.path.strip_prefix("policy.megatron_cfg.")?;
            let name = rest
                .strip_prefix("optimizer.")
                .or(rest.strip_prefix("distributed_data_parallel_config."))
                .unwrap_or(rest);
            let field = match name {
                "grad_reduce_in_fp32" => Field::AccumulateAllreduceGradsInFp32,
                "num_layers_in_first_pipeline_stage" => Field::DecoderFirstPipelineNumLayers,
                "num_layers_in_last_pipeline_stage" => Field::DecoderLastPipelineNumLayers,
                // The format of the optimizer's weights; the model's is in `policy.precision`.
                "params_dtype" | "recompute_granularity" => return None,
                "bf16" | "fp16" if rest.starts_with("optimizer.") => return None,
                other => Field::named(other)?,
            };
            Some((leaf.path.clone(), field))
        })
        .collect();
    // `nemo_rl/models/megatron/setup.py`: `model_cfg.bf16 = dtype == torch.bfloat16`, whatever the optimizer's switch says.
    if let Some(leaf) = leaves.get("policy.precision") {
        let field = match leaf.value.as_str() {
            "float32" | "fp32" => Some((Field::Bf16, "false")),
            "float16" | "fp16" => Some((Field::Fp16, "true")),
            "bfloat16" | "bf16" => Some((Field::Bf16, "true")),
            _ => None,
        };
        if let Some((field, value)) = field {
            leaves.say(field, value, leaf);
        }
    }
    let gradients = leaves.flag("policy.megatron_cfg.distributed_data_parallel_config.overlap_grad_reduce");
    for (path, field) in named {
        // Megatron's own arguments reject this unless gradients overlap, too. NeMo-RL passes it to the wrapper, which
        // prefetches anyway (`nemo_rl/models/megatron/setup.py`).
        if field == Field::OverlapParamGather && gradients == Some(false) {
            if let Some(leaf) = leaves.yes(&path) {
                leaves.not_estimated(leaf, "overlap_param_gather without overlap_grad_reduce");
            }
        } else {
            leaves.take(&[&path], field);
        }
    }
    // A single switch replaces Megatron's three options.
    if let Some(leaf) = leaves.yes("policy.megatron_cfg.activation_checkpointing") {
        // Full layers, one by one (`recompute_granularity: full`, the default in NeMo-RL's files).
        let selective = leaves.text("policy.megatron_cfg.recompute_granularity") == Some("selective");
        if selective {
            leaves.say(Field::RecomputeGranularity, "selective", leaf);
        } else {
            leaves.recompute_all(leaf);
            leaves.say(Field::RecomputeNumLayers, "1", leaf);
        }
    }
    leaves.pass("policy.megatron_cfg.recompute_granularity");
    for path in ["policy.megatron_cfg.bias_activation_fusion", "policy.megatron_cfg.peft.enabled"] {
        leaves.pass(path);
    }
    if let Some(leaf) = leaves.yes("policy.megatron_cfg.peft.enabled") {
        leaves.say(Field::TrainType, "lora", leaf);
        leaves.take_all(&[
            ("policy.megatron_cfg.peft.dim", Field::LoraRank),
            ("policy.megatron_cfg.peft.alpha", Field::LoraAlpha),
            ("policy.megatron_cfg.peft.dropout", Field::LoraDropout),
        ]);
        // Without names Megatron-Bridge adapts every parallel linear layer, including the output
        // layer but not grouped experts.
        let names = leaves.get("policy.megatron_cfg.peft.target_modules").cloned();
        if let Some(names) = names.filter(|leaf| !matches!(leaf.value.trim(), "" | "[]")) {
            leaves.say(Field::LoraTargetModules, &names.value, &names);
            leaves.say(Field::AdapterLibrary, "megatron-bridge", &names);
        }
    }
    leaves.pass_below(&["policy.megatron_cfg.peft."]);
    if let Some(leaf) = leaves.yes("policy.megatron_cfg.fp8_cfg.enabled") {
        let format = leaves.text("policy.megatron_cfg.fp8_cfg.fp8").unwrap_or("e4m3").to_owned();
        leaves.say(Field::Fp8, &format, leaf);
        leaves.take_all(&[
            ("policy.megatron_cfg.fp8_cfg.fp8_recipe", Field::Fp8Recipe),
            ("policy.megatron_cfg.fp8_cfg.fp8_param", Field::Fp8ParamGather),
        ]);
    }
    leaves.pass_below(&["policy.megatron_cfg.fp8_cfg."]);
    lack_yes(
        leaves,
        &[
            (
                "policy.megatron_cfg.use_fused_linear_logprobs",
                Effect::Memory,
                "log-probabilities fused with the output layer",
            ),
            // Its first name, with `linear_ce_fusion_chunk_size` (`examples/configs/sft.yaml`).
            (
                "policy.megatron_cfg.use_linear_ce_fusion_loss",
                Effect::Memory,
                "log-probabilities fused with the output layer",
            ),
        ],
    );
    leaves.pass("policy.megatron_cfg.linear_ce_fusion_chunk_size");
    // With a single depth no layer is shared.
    let depths = leaves.whole("policy.megatron_cfg.mtp_num_layers").unwrap_or(2);
    if depths > 1 {
        let what = "multi-token-prediction depths that share one layer";
        lack_yes(leaves, &[("policy.megatron_cfg.mtp_use_repeated_layer", Effect::Model, what)]);
    }
    leaves.pass("policy.megatron_cfg.mtp_use_repeated_layer");
    log_probs(leaves);
    for (field, value) in [
        (Field::Bf16, "true"),
        (Field::UseDistributedOptimizer, "true"),
        (Field::UsePrecisionAwareOptimizer, "true"),
        (Field::MoeTokenDispatcherType, "alltoall"),
        (Field::HiddenDropout, "0"),
        (Field::AttentionDropout, "0"),
        (Field::MakeVocabSizeDivisibleBy, "1"),
        (Field::GradientAccumulationFusion, "false"),
    ] {
        leaves.state(field, value, Origin::Default, "default of NeMo-RL");
    }
    leaves.reading.software = Some((Software::MegatronCoreTe, "NeMo-RL's Megatron policy".to_owned()));
}

/// Every loss of NeMo-RL under Megatron uses its own log-probabilities instead of Megatron's cross entropy, in chunks
/// of tokens of a sequence if configured (`nemo_rl/algorithms/loss/utils.py:prepare_loss_input`).
fn log_probs(leaves: &mut Leaves<'_>) {
    leaves.pass("policy.megatron_cfg.defer_fp32_logits");
    match leaves.get("policy.logprob_chunk_size").filter(|leaf| leaf.whole().is_some_and(|tokens| tokens > 0))
    {
        Some(leaf) => {
            leaves.say(Field::LossKind, "distributed_chunks", leaf);
            leaves.say(Field::LogProbChunk, &leaf.value, leaf);
        }
        None if leaves.flag("policy.megatron_cfg.defer_fp32_logits") == Some(true) => leaves.state(
            Field::LossKind,
            "distributed_copy",
            Origin::Derived,
            "defer_fp32_logits: the logits are cast to fp32 in the loss",
        ),
        None => leaves.state(
            Field::LossKind,
            "distributed",
            Origin::Default,
            "NeMo-RL takes log-probabilities over tensor ranks (DistributedLogprob)",
        ),
    }
}
