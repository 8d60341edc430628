//! The engines of SkyRL's trainers: FSDP2 (`skyrl/backends/skyrl_train/distributed/fsdp_strategy.py`,
//! `workers/model_wrapper.py`) and Megatron (`workers/megatron/megatron_worker.py:init_configs`,
//! `distributed/megatron/optimizer.py`).

use super::super::leaves::Leaves;
use super::common::{defaults, lack, lack_yes, lora, shards, transformers};
use crate::{Effect, Origin};
use shardscope_plan::{Field, Software};

pub(super) const SKYRL: &str = "SkyRL";

/// Tokens of each sequence whose log-probabilities, or entropy, are computed at once (`logprobs_chunk_size`).
const CHUNK: &str = "1024";

/// Names of the rollout engine's keys until they became a group (`generator.inference_engine.`) in February 2026 (#1187). Releases that
/// still took them start the engine without graphs (`enforce_eager`, #569 and #1818) and compute log-probabilities of all
/// tokens at once (#1610): `skyrl-train/skyrl_train/config/ppo_base_config.yaml`, `workers/megatron/megatron_model_wrapper.py`.
const EARLY: [&str; 6] = [
    "generator.backend",
    "generator.num_inference_engines",
    "generator.inference_engine_tensor_parallel_size",
    "generator.gpu_memory_utilization",
    "generator.run_engines_locally",
    "generator.weight_sync_backend",
];

/// Whether a text is of a SkyRL before its keys of today.
pub(super) fn is_early(leaves: &Leaves<'_>) -> bool {
    EARLY.iter().any(|key| leaves.has(key))
}

/// The key prefixes of a trainer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Keys {
    /// Keys of the trainer.
    trainer: &'static str,
    /// Keys of the model that trains.
    own: &'static str,
    /// Keys of the machines that it trains on.
    machines: &'static str,
}

impl Keys {
    /// The prefixes for reinforcement learning.
    pub(super) const fn policy() -> Self {
        Self { trainer: "trainer.", own: "trainer.policy.", machines: "trainer.placement.policy_" }
    }

    /// The prefixes of the supervised trainer.
    pub(super) const fn tuning() -> Self {
        Self { trainer: "", own: "", machines: "placement." }
    }

    /// Whether these are the supervised trainer's.
    pub(super) const fn tunes(&self) -> bool {
        self.trainer.is_empty()
    }

    /// A key of the model that trains.
    pub(super) fn own(&self, key: &str) -> String {
        format!("{}{key}", self.own)
    }

    /// A key of its machines.
    pub(super) fn machines(&self, key: &str) -> String {
        format!("{}{key}", self.machines)
    }

    fn trainer(&self, key: &str) -> String {
        format!("{}{key}", self.trainer)
    }
}

/// Reads the engine that trains.
pub(super) fn read(leaves: &mut Leaves<'_>, keys: &Keys) {
    let strategy = leaves.get(&keys.trainer("strategy")).cloned();
    let usual = if keys.tunes() { "megatron" } else { "fsdp" };
    match strategy.as_ref().map_or(usual, |leaf| leaf.value.as_str()) {
        "megatron" => megatron(leaves, keys),
        "fsdp" | "fsdp2" => fsdp(leaves, keys),
        _ => {
            fsdp(leaves, keys);
            if let Some(leaf) = strategy {
                lack(leaves, &leaf, Effect::Memory, "this training engine of SkyRL");
            }
        }
    }
    lack_yes(
        leaves,
        &[
            (
                &keys.trainer("algorithm.use_entropy_loss"),
                Effect::Memory,
                "an entropy term in the loss, whose log-softmax is saved",
            ),
            (
                &keys.trainer("mtp.enabled"),
                Effect::Model,
                "draft heads trained with the policy (multi-token prediction)",
            ),
            (
                &keys.own("model.fake_int4_qat.enabled"),
                Effect::Memory,
                "experts quantized to 4 bits in each forward (quantization-aware training)",
            ),
        ],
    );
    // With or without an explicit setting, samples of a micro-batch are concatenated without padding if
    // this is on, which is the default.
    for path in ["remove_microbatch_padding", "use_sample_packing"] {
        if let Some(leaf) = leaves.get(&keys.trainer(path)).filter(|leaf| leaf.flag() == Some(false)) {
            leaves.reading.keep(&|found| !matches!(found.field, Field::Packing | Field::PaddingMask));
            leaves.switch(Field::Packing, false, leaf);
            leaves.switch(Field::PaddingMask, true, leaf);
        }
    }
}

/// Weights in fp32 shards, gathered in bf16, with gradients reduced in fp32; also the base weights under LoRA.
fn fsdp(leaves: &mut Leaves<'_>, keys: &Keys) {
    if let Some(leaf) = leaves.get(&keys.trainer("flash_attn")).filter(|leaf| leaf.flag() == Some(false)) {
        leaves.say(Field::AttnImplementation, "sdpa", leaf);
    }
    transformers(leaves, SKYRL, "fsdp2");
    for (key, field) in [("param_dtype", None), ("reduce_dtype", Some(Field::ReduceDtype))] {
        let path = keys.own(&format!("fsdp_config.mixed_precision.{key}"));
        match (leaves.get(&path), field) {
            (Some(leaf), Some(field)) => leaves.say(field, &leaf.value, leaf),
            (Some(leaf), None) if !matches!(leaf.value.as_str(), "bf16" | "bfloat16") => {
                lack(leaves, leaf, Effect::Memory, "weights gathered in a dtype other than bf16");
            }
            _ => {}
        }
    }
    defaults(
        leaves,
        SKYRL,
        &[
            (Field::Bf16, "true"),
            (Field::ParamsDtype, "fp32"),
            (Field::ReduceDtype, "fp32"),
            (Field::GradientCheckpointing, "true"),
        ],
    );
    if let Some(leaf) = leaves.get(&keys.trainer("gradient_checkpointing")) {
        leaves.reading.keep(&|found| found.field != Field::GradientCheckpointing);
        leaves.switch(Field::GradientCheckpointing, leaf.flag() != Some(false), leaf);
    }
    match leaves.get(&keys.own("fsdp_config.reshard_after_forward")) {
        Some(leaf) if leaf.flag() == Some(false) => leaves.say(Field::ZeroStage, "2", leaf),
        Some(leaf) if leaf.whole().is_some_and(|ranks| ranks > 1) => {
            lack(leaves, leaf, Effect::Memory, "gathered weights sharded again over fewer ranks");
        }
        _ => {}
    }
    defaults(leaves, SKYRL, &[(Field::ZeroStage, "3")]);
    shards(leaves, &keys.own("fsdp_config.fsdp_size"));
    if let Some(leaf) = leaves.get(&keys.own("sequence_parallel_size")).filter(|leaf| leaf.whole() != Some(1))
    {
        leaves.say(Field::ContextParallelSize, &leaf.value, leaf);
        leaves.say(Field::CpCommType, "a2a", leaf);
    }
    let [alpha, dropout] = ["alpha", "dropout"].map(|key| keys.own(&format!("model.lora.{key}")));
    lora(
        leaves,
        &keys.own("model.lora.rank"),
        &[(alpha.as_str(), Field::LoraAlpha), (dropout.as_str(), Field::LoraDropout)],
        &keys.own("model.lora.target_modules"),
    );
    if let Some(leaf) = leaves
        .get(&keys.own("model.lora.exclude_modules"))
        .filter(|leaf| leaf.value != "null" && leaves.reading.value(Field::LoraRank).is_some())
    {
        lack(leaves, leaf, Effect::Model, "adapters with excluded modules");
    }
    lack_yes(
        leaves,
        &[(
            &keys.own("fsdp_config.cpu_offload"),
            Effect::Memory,
            "weights, gradients and optimizer states on the host while training (FSDP2 CPUOffloadPolicy)",
        )],
    );
    let chunk = keys.trainer("logprobs_chunk_size");
    if let Some(leaf) = leaves.get(&chunk).filter(|leaf| leaf.value != CHUNK) {
        lack(leaves, leaf, Effect::Memory, "entropy computed in chunks other than 1,024 tokens");
    }
}

/// Groups whose keys have Megatron's names.
const GROUPS: [&str; 4] = ["", "ddp_config.", "transformer_config_kwargs.", "optimizer_config_kwargs."];

/// Names in Megatron's configuration that differ from its options (`megatron/core/transformer/transformer_config.py`).
const CONFIG: [(&str, Field); 4] = [
    ("num_layers_in_first_pipeline_stage", Field::DecoderFirstPipelineNumLayers),
    ("num_layers_in_last_pipeline_stage", Field::DecoderLastPipelineNumLayers),
    ("bias_activation_fusion", Field::BiasSwigluFusion),
    ("grad_reduce_in_fp32", Field::AccumulateAllreduceGradsInFp32),
];

fn megatron(leaves: &mut Leaves<'_>, keys: &Keys) {
    let own = keys.own("megatron_config.");
    let named: Vec<(String, Field)> = leaves
        .all()
        .iter()
        .filter_map(|leaf| {
            let rest = leaf.path.strip_prefix(&own)?;
            let name = GROUPS.iter().rev().find_map(|group| rest.strip_prefix(group))?;
            if name.contains('.') || leaf.value == "null" {
                return None;
            }
            let config = CONFIG.iter().find(|(known, _)| *known == name).map(|(_, field)| *field);
            Some((leaf.path.clone(), config.or_else(|| Field::named(name))?))
        })
        .collect();
    for (path, field) in named {
        leaves.take(&[&path], field);
    }
    if keys.tunes() {
        let halves = [(Field::TensorModelParallelSize, "2"), (Field::PipelineModelParallelSize, "2")];
        defaults(leaves, SKYRL, &halves);
    }
    let tensor = leaves.reading.count(Field::TensorModelParallelSize).unwrap_or(1);
    leaves.state(
        Field::SequenceParallel,
        if tensor > 1 { "true" } else { "false" },
        Origin::Derived,
        "wherever tensors are cut",
    );
    let recomputes = leaves.flag(&keys.trainer("gradient_checkpointing")) != Some(false);
    if recomputes {
        // Full layers, unless another granularity is stated (`DEFAULT_TRANSFORMER_CONFIG_KWARGS`).
        defaults(leaves, SKYRL, &[(Field::RecomputeGranularity, "full")]);
        if leaves.reading.value(Field::RecomputeGranularity) == Some("full") {
            let whole = [(Field::RecomputeMethod, "uniform"), (Field::RecomputeNumLayers, "1")];
            defaults(leaves, SKYRL, &whole);
        }
    } else {
        leaves.reading.keep(&|found| {
            !matches!(
                found.field,
                Field::RecomputeGranularity | Field::RecomputeMethod | Field::RecomputeNumLayers
            )
        });
    }
    let flash = leaves.flag(&keys.trainer("flash_attn")) != Some(false);
    defaults(
        leaves,
        SKYRL,
        &[
            (Field::Bf16, "true"),
            (Field::UseDistributedOptimizer, "true"),
            (Field::AccumulateAllreduceGradsInFp32, "true"),
            (Field::OverlapGradReduce, "false"),
            (Field::MoeTokenDispatcherType, "alltoall"),
            (Field::MoeGroupedGemm, "true"),
            (Field::AttentionBackend, if flash { "flash" } else { "fused" }),
            (Field::HiddenDropout, "0"),
            (Field::AttentionDropout, "0"),
            (Field::MakeVocabSizeDivisibleBy, "1"),
            (Field::GradientAccumulationFusion, "false"),
        ],
    );
    leaves.reading.software = Some((Software::MegatronCoreTe, "SkyRL's Megatron engine".to_owned()));
    log_probs(leaves, keys);
    adapters(leaves, keys);
}

/// Log-probabilities are computed from logits that Megatron casts to fp32, one chunk at a
/// time unless that is turned off.
fn log_probs(leaves: &mut Leaves<'_>, keys: &Keys) {
    let path = keys.trainer("logprobs_chunk_size");
    match leaves.get(&path) {
        Some(leaf) if leaf.value == "null" => leaves.say(Field::LossKind, "distributed", leaf),
        Some(leaf) => {
            leaves.say(Field::LossKind, "distributed_wide_chunks", leaf);
            leaves.say(Field::LogProbChunk, &leaf.value, leaf);
        }
        None if is_early(leaves) => {
            leaves.state(Field::LossKind, "distributed", Origin::Default, "default of SkyRL before May 2026");
        }
        None => defaults(
            leaves,
            SKYRL,
            &[(Field::LossKind, "distributed_wide_chunks"), (Field::LogProbChunk, CHUNK)],
        ),
    }
    lack_yes(
        leaves,
        &[(
            &keys.trainer("fused_lm_head_logprob"),
            Effect::Memory,
            "log-probabilities fused with the output layer",
        )],
    );
}

/// Adapters under Megatron, which are Megatron-Bridge's.
fn adapters(leaves: &mut Leaves<'_>, keys: &Keys) {
    let rank = keys.own("model.lora.rank");
    let Some(leaf) = leaves.get(&rank).filter(|leaf| leaf.whole() != Some(0)) else { return };
    leaves.say(Field::LoraRank, &leaf.value, leaf);
    leaves.say(Field::TrainType, "lora", leaf);
    let kind = keys.own("megatron_config.lora_config.lora_type");
    let library = match leaves.text(&kind) {
        Some("canonical_lora") => "megatron-bridge-canonical",
        _ => "megatron-bridge",
    };
    leaves.state(Field::AdapterLibrary, library, Origin::Derived, "SkyRL builds adapters by Megatron-Bridge");
    let [alpha, dropout] = ["alpha", "dropout"].map(|key| keys.own(&format!("model.lora.{key}")));
    leaves.take_all(&[(alpha.as_str(), Field::LoraAlpha), (dropout.as_str(), Field::LoraDropout)]);
    // "all-linear" stands for the library's own list.
    let targets = keys.own("model.lora.target_modules");
    if let Some(leaf) = leaves.get(&targets).filter(|leaf| leaf.value != "all-linear") {
        leaves.say(Field::LoraTargetModules, &leaf.value, leaf);
    }
}
