//! NeMo-RL: a policy under DTensor or Megatron, vLLM for rollouts (`nemo_rl/models/policy`, `examples/configs`).

use super::super::frameworks::has_recorded_plan;
use super::super::frameworks::one_by_one;
use super::super::leaves::{Leaf, Leaves};
use super::common::{ask, lack, lack_yes, lora, model, own_code, policy, transformers};
use super::{nemo_megatron, nemo_rollout};
use crate::{Effect, Origin};
use shardscope_plan::Field;

const NEMO: &str = "NeMo-RL";
/// A family of experts for which Automodel has no modules (`MixtralForCausalLM` is not in its `MODEL_ARCH_MAPPING`).
const WITHOUT_MODULES: &str = "Mixtral";

pub(super) fn read(leaves: &mut Leaves<'_>) {
    let rules = [
        ("policy.max_total_sequence_length", Field::SeqLength),
        ("policy.train_global_batch_size", Field::GlobalBatchSize),
        ("policy.train_micro_batch_size", Field::MicroBatchSize),
        ("cluster.gpus_per_node", Field::GpusPerNode),
        ("cluster.num_nodes", Field::NumNodes),
    ];
    for (path, field) in rules {
        leaves.take(&[path], field);
    }
    let group = ["grpo.", "ppo.", "sft.", "dpo.", "rm.", "distillation."];
    let starts = |group: &&str| leaves.all().iter().any(|leaf| leaf.path.starts_with(group));
    let task = group.into_iter().find(starts);
    let megatron = leaves.flag("policy.megatron_cfg.enabled") == Some(true);
    if megatron {
        nemo_megatron::read(leaves)
    } else {
        dtensor(leaves)
    }
    // On-policy distillation weights rollouts with models on separate accelerators.
    let teaches = |leaf: &&Leaf| leaf.path.split('.').any(|part| part.contains("teacher"));
    let teacher = leaves.all().iter().find(teaches).filter(|_| task != Some("distillation."));
    let weighed = leaves.get("grpo.adv_estimator.name").filter(|leaf| leaf.value == "opd");
    if let Some(leaf) = weighed.or(teacher) {
        let what = "teacher models, on shared or separate accelerators";
        let item = crate::NotModelled::new(&leaf.path, &leaf.value, Effect::Memory, what).at_some(leaf.span);
        leaves.reading.not_modelled.push(item);
    }
    match task {
        Some("grpo." | "ppo.") => {
            policy(leaves, NEMO);
            quantization(leaves);
            filtered(leaves);
            nemo_rollout::read(leaves);
        }
        Some("dpo.") => {
            leaves.state(Field::TrainingObjective, "dpo", Origin::Derived, "dpo");
            // `add_ref_logprobs_to_data` of `nemo_rl/algorithms/dpo.py`: the reference's weights stay on the host, and
            // are swapped in to compute its log-probabilities before the step.
            leaves.state(
                Field::ReferenceModel,
                "precomputed",
                Origin::Default,
                "NeMo-RL takes the reference's log-probabilities before each step",
            );
            let why =
                "NeMo-RL takes log-probabilities of logits in fp32 (get_next_token_logprobs_from_logits)";
            leaves.state(Field::PreferenceLogits, "fp32", Origin::Default, why);
        }
        Some("sft.") | None => {}
        Some(other) => {
            let what = "a head or a teacher that is not the policy's";
            let name = other.trim_end_matches('.').to_owned();
            let item = crate::NotModelled::new(&name, "", Effect::Model, what);
            leaves.reading.not_modelled.push(item);
        }
    }
    packing(leaves);
    model(leaves, &["policy.model_name"]);
    if !megatron {
        modules(leaves);
    }
    // A pack determines both the number of samples in a micro-batch and the length of its sequence.
    let packed = leaves.reading.value(Field::MaxTokensPerMicroBatch).is_some();
    let questions = [
        (Field::MicroBatchSize, "Micro-batch size (policy.train_micro_batch_size)?", "1"),
        (Field::SeqLength, "Sequence length (policy.max_total_sequence_length)?", "4096"),
        (Field::GlobalBatchSize, "Global batch size (policy.train_global_batch_size)?", "512"),
    ];
    ask(leaves, if packed { &questions[2..] } else { &questions });
    leaves.pass_below(&[
        "checkpointing.",
        "logger.",
        "data.",
        "env.",
        "grpo.",
        "sft.",
        "dpo.",
        "ppo.",
        "loss_fn.",
        "value_loss_fn.scale",
        "value_loss_fn.cliprange",
        "policy.tokenizer",
        "policy.optimizer",
        "policy.scheduler",
        "policy.megatron_cfg.scheduler",
        "policy.megatron_cfg.env_vars",
        "policy.dtensor_cfg.env_vars",
        "policy.generation.",
        "policy.make_sequence_length",
        "policy.max_grad_norm",
        "policy.logprob_batch_size",
        "policy.generation_batch_size",
        "policy.megatron_cfg.optimizer.lr",
        "policy.megatron_cfg.optimizer.min_lr",
        "policy.megatron_cfg.optimizer.weight_decay",
        "data_plane.",
        "defaults",
        "cluster.",
        "reward_penalties",
        "policy.logprob_chunk_size",
        "policy.megatron_cfg.empty_unused_memory_level",
        "policy.megatron_cfg.force_reconvert",
        "policy.megatron_cfg.converter_type",
        "policy.megatron_cfg.checkpoint",
        "policy.hf_config_overrides",
        "policy.dtensor_cfg._v2",
        "policy.dtensor_cfg.automodel_kwargs",
        "policy.dtensor_cfg.custom_parallel_plan",
        "policy.megatron_cfg.moe_router_bias_update_rate",
        "policy.megatron_cfg.moe_per_layer_logging",
        "policy.megatron_cfg.pipeline_dtype",
        "policy.megatron_cfg.freeze_moe_router",
        "policy.megatron_cfg.optimizer.",
        "policy.megatron_cfg.distributed_data_parallel_config.",
        "policy.refit",
        "async_rl.",
        "policy.precision",
        "policy.megatron_cfg.use_gloo",
        "policy.megatron_cfg.fused_linear_logprobs_chunk",
        "policy.megatron_cfg.mtp_loss",
        "policy.megatron_cfg.track",
        "policy.offload_optimizer",
        "policy.megatron_cfg.cuda_graph_warmup",
        "policy.router_replay.enabled",
    ]);
}

/// Whose modules train: those of transformers, but for models that bring code of their own, which every worker trusts
/// (`dtensor_policy_worker.py`, `automodel/setup.py`), and, by the newer worker, mixtures of experts for which Automodel has modules
/// (`_transformers/registry.py:MODEL_ARCH_MAPPING`). Its dense ones are passed over, because their weights cannot be handed to vLLM one
/// by one (`automodel/setup.py:_maybe_set_force_hf`).
fn modules(leaves: &mut Leaves<'_>) {
    const FORCED: &str = "policy.dtensor_cfg.automodel_kwargs.force_hf";
    own_code(leaves, &["policy.model_name"], "", true);
    let newer = leaves.yes("policy.dtensor_cfg._v2").filter(|_| leaves.flag(FORCED) != Some(true));
    let mixes = leaves.reading.count(Field::NumExperts).is_some_and(|experts| experts > 1);
    let name = leaves.text("policy.model_name").unwrap_or_default();
    if let Some(leaf) = newer.filter(|_| mixes && !name.contains(WITHOUT_MODULES)) {
        let what = "Automodel's own modules for this model in the place of transformers' (automodel_kwargs.force_hf: true)";
        lack(leaves, leaf, Effect::Memory, what);
    }
}

/// Micro-batches of a fixed number of tokens (`train_mb_tokens`, over all context-parallel ranks): samples concatenated
/// into one sequence (`bin_capacity` in `nemo_rl/distributed/batched_data_dict.py`), or under `dynamic_batching`
/// batched and padded to the longest, so that number times length stays within the limit (`total_tokens_in_mbs` there).
fn packing(leaves: &mut Leaves<'_>) {
    const JOINED: &str = "policy.sequence_packing";
    const PADDED: &str = "policy.dynamic_batching";
    for group in [JOINED, PADDED] {
        for key in [
            "enabled",
            "train_mb_tokens",
            "logprob_mb_tokens",
            "algorithm",
            "sequence_length_round",
            "microbatch_order",
        ] {
            leaves.pass(&format!("{group}.{key}"));
        }
    }
    let is_on = |group: &&str| leaves.flag(&format!("{group}.enabled")) == Some(true);
    let Some(group) = [JOINED, PADDED].into_iter().find(is_on) else { return };
    // `${mul:...}` is the product of length and micro-batch, which those two settings already state.
    let tokens = leaves.get(&format!("{group}.train_mb_tokens"));
    let Some((leaf, tokens)) = tokens.and_then(|leaf| Some((leaf, leaf.whole()?))) else { return };
    let length = leaves.reading.count(Field::SeqLength).filter(|length| *length > 0);
    let samples = length.filter(|length| group == PADDED && tokens.is_multiple_of(*length));
    if let Some(samples) =
        samples.and_then(|length| tokens.checked_div(length)).filter(|samples| *samples > 0)
    {
        leaves.reading.keep(&|found| found.field != Field::MicroBatchSize);
        let note = "train_mb_tokens / max_total_sequence_length: the longest samples side by side";
        leaves.say_noted(Field::MicroBatchSize, &samples.to_string(), leaf, note);
        return;
    }
    // Shorter samples may fill the rest: at most the limit of tokens, in one sequence.
    leaves.say(Field::MaxTokensPerMicroBatch, &leaf.value, leaf);
    leaves.longest_sample();
}

fn dtensor(leaves: &mut Leaves<'_>) {
    // `attn_implementation="flash_attention_2" if enable_seq_packing else None` of every DTensor worker: otherwise
    // transformers chooses SDPA, over padded samples and without a mask (`attention_mask_input_all_ones`). Context
    // parallelism runs its flash kernel in a ring (`context_parallel_ctx`), which is counted as flash attention.
    let rings = leaves.whole("policy.dtensor_cfg.context_parallel_size").is_some_and(|ranks| ranks > 1);
    if leaves.flag("policy.sequence_packing.enabled") != Some(true) && !rings {
        let why = "without policy.sequence_packing";
        leaves.state(Field::AttnImplementation, "sdpa", Origin::Default, why);
        leaves.state(Field::Packing, "false", Origin::Default, why);
    }
    transformers(leaves, NEMO, "fsdp2");
    leaves.state(Field::Bf16, "true", Origin::Default, "policy.precision bfloat16");
    // Regardless of the precision, which is that of computation: "Always load in float32 for master weights".
    leaves.state(
        Field::ParamsDtype,
        "fp32",
        Origin::Default,
        "NeMo-RL's DTensor policies load weights in fp32",
    );
    leaves.state(
        Field::ZeroStage,
        "3",
        Origin::Default,
        "DTensor shards weights, gradients and states (fully_shard)",
    );
    // `MixedPrecisionPolicy` of `nemo_rl/models/automodel/setup.py` and `nemo_rl/models/dtensor/parallelize.py`.
    let policy = "MixedPrecisionPolicy of NeMo-RL's DTensor policy";
    leaves.state(Field::ReduceDtype, "fp32", Origin::Default, policy);
    leaves.state(Field::OutputDtype, "fp32", Origin::Default, policy);
    leaves.state(Field::GradientCheckpointing, "false", Origin::Default, "default of NeMo-RL");
    if leaves.flag("policy.dtensor_cfg._v2") == Some(true) {
        // `nemo_automodel/components/distributed/parallelizer.py:apply_fsdp2_sharding_recursively`.
        let why = "Automodel's FSDP gathers each module of a list of modules";
        leaves.state(Field::VisionUnits, "lists", Origin::Default, why);
    }
    if let Some(leaf) = leaves.get("policy.dtensor_cfg.activation_checkpointing") {
        // The older worker wraps the modules of each layer, so that four inputs of a layer are saved instead of one
        // (`nemo_rl/models/dtensor/parallelize.py`).
        let again = leaf.flag() == Some(true);
        if again && leaves.flag("policy.dtensor_cfg._v2") != Some(true) {
            one_by_one(leaves, leaf);
        } else {
            leaves.switch(Field::GradientCheckpointing, again, leaf);
        }
    }
    for (key, field) in [
        ("policy.dtensor_cfg.tensor_parallel_size", Field::TensorModelParallelSize),
        ("policy.dtensor_cfg.context_parallel_size", Field::ContextParallelSize),
        ("policy.dtensor_cfg.expert_parallel_size", Field::ExpertModelParallelSize),
    ] {
        if let Some(leaf) = leaves.get(key).filter(|leaf| leaf.whole() != Some(1)) {
            leaves.say(field, &leaf.value, leaf);
        }
    }
    if leaves.whole("policy.dtensor_cfg.tensor_parallel_size").is_some_and(|degree| degree > 1) {
        over_tensor_ranks(leaves);
    }
    for key in ["sequence_parallel", "clear_cache_every_n_steps", "enabled"] {
        leaves.pass(&format!("policy.dtensor_cfg.{key}"));
    }
    if let Some(leaf) =
        leaves.get("policy.dtensor_cfg.dp_replicate_size").filter(|leaf| leaf.whole() != Some(1))
    {
        leaves.say_noted(Field::NumDistributedOptimizerInstances, &leaf.value, leaf, "HSDP replicas");
    }
    if let Some(leaf) = leaves.yes("policy.dtensor_cfg.lora_cfg.enabled") {
        let _ = leaf;
        lora(
            leaves,
            "policy.dtensor_cfg.lora_cfg.dim",
            &[
                ("policy.dtensor_cfg.lora_cfg.alpha", Field::LoraAlpha),
                ("policy.dtensor_cfg.lora_cfg.dropout", Field::LoraDropout),
            ],
            "policy.dtensor_cfg.lora_cfg.target_modules",
        );
        leaves.state(Field::LoraRank, "8", Origin::Default, "default of NeMo-RL");
        leaves.state(Field::TrainType, "lora", Origin::Derived, "lora_cfg.enabled");
        leaves.state(Field::LoraTargetModules, "all-linear", Origin::Default, "match_all_linear");
    }
    leaves.pass_below(&["policy.dtensor_cfg.lora_cfg.", "policy.megatron_cfg."]);
    // CPUOffloadPolicy: shards of weights, gradients and optimizer states live on the host.
    if let Some(leaf) = leaves.yes("policy.dtensor_cfg.cpu_offload") {
        leaves.switch(Field::OffloadParam, true, leaf);
        leaves.switch(Field::OffloadOptimizer, true, leaf);
    }
    leaves.pass("policy.dtensor_cfg.cpu_offload");
}

/// Tensor parallelism of DTensor: the plan for the model's class, and log-probabilities over vocabulary-parallel ranks,
/// of logits that FSDP2 returns in fp32 (`nemo_rl/models/automodel/train.py:LossPostProcessor`). Without sequence
/// parallelism the older worker's plan (`nemo_rl/models/dtensor/parallelize.py`) uses the same styles as Automodel's;
/// with it each projection gathers its own input.
fn over_tensor_ranks(leaves: &mut Leaves<'_>) {
    let name = leaves.text("policy.model_name").unwrap_or_default();
    let newer = leaves.flag("policy.dtensor_cfg._v2") == Some(true);
    let cut = leaves.flag("policy.dtensor_cfg.sequence_parallel") == Some(true);
    if (newer || !cut) && has_recorded_plan(name) {
        let why = "NeMo-RL cuts models by Automodel's plans";
        leaves.state(Field::DtensorPlan, "true", Origin::Derived, why);
    }
    let why = "NeMo-RL takes log-probabilities over the vocabulary of all tensor ranks (DistributedLogprob)";
    leaves.state(Field::LossKind, "distributed", Origin::Derived, why);
    if let Some(leaf) = leaves.yes("policy.dtensor_cfg.sequence_parallel") {
        leaves.switch(Field::SequenceParallel, true, leaf);
    }
    for (path, what) in [
        ("policy.dtensor_cfg.custom_parallel_plan", "a custom parallel plan"),
        ("policy.logprob_chunk_size", "log-probabilities of DTensor's tensor ranks, a chunk at a time"),
    ] {
        let set = |leaf: &&Leaf| !matches!(leaf.value.as_str(), "" | "null");
        if let Some(leaf) = leaves.get(path).filter(set) {
            lack(leaves, leaf, Effect::Memory, what);
        }
    }
}

/// Training filters the logits in the same way as sampling if that is restricted to a part of the vocabulary
/// (`nemo_rl/algorithms/logits_sampling_utils.py:need_top_k_or_top_p_filtering`).
fn filtered(leaves: &mut Leaves<'_>) {
    for (path, off) in
        [("policy.generation.top_p", ["1", "1.0", "null"]), ("policy.generation.top_k", ["-1", "null", ""])]
    {
        if let Some(leaf) = leaves.get(path).filter(|leaf| !off.contains(&leaf.value.as_str())) {
            let what = "log-probabilities of logits filtered by top-k or top-p, which sorts them";
            lack(leaves, leaf, Effect::Memory, what);
        }
    }
}

/// Quantization-aware training, and a draft model trained with the policy.
fn quantization(leaves: &mut Leaves<'_>) {
    lack_yes(
        leaves,
        &[("policy.draft.enabled", Effect::Memory, "a draft model trained with the policy (EAGLE)")],
    );
    // Settings of a draft model that is not enabled have no effect.
    leaves.pass_below(&["policy.draft."]);
    if let Some(leaf) = leaves.get("policy.quant_cfg") {
        lack(leaves, leaf, Effect::Memory, "quantization-aware training (ModelOpt)");
    }
}
