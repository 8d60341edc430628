//! verl's Megatron engine: how the actor is sharded, Megatron's own configuration under verl's keys, adapters,
//! and offloading between phases.

use super::super::leaves::Leaves;
use super::common::{defaults, lack, offloads};
use super::verl_builders::Builder;
use super::verl_keys::{ACTOR, VERL, at};
use crate::{Effect, Origin};
use shardscope_plan::{Field, Software};
use shardscope_source::{Code, Diagnostic};

/// The number of accelerators of the training.
pub(super) fn world(leaves: &Leaves<'_>) -> Option<u64> {
    let nodes = leaves.reading.count(Field::NumNodes)?;
    nodes.checked_mul(leaves.reading.count(Field::GpusPerNode)?)
}

/// The number of ranks that together hold one copy of the model, as far as it is stated.
pub(super) fn ranks_of_a_replica(leaves: &Leaves<'_>) -> u64 {
    let cut = [Field::ContextParallelSize, Field::TensorModelParallelSize, Field::PipelineModelParallelSize];
    let size = |field: Field| leaves.reading.count(field).unwrap_or(1).max(1);
    cut.into_iter().fold(1, |ranks: u64, field| ranks.saturating_mul(size(field)))
}

/// Names in Megatron's configuration that differ from its options (`megatron/core/transformer/transformer_config.py`).
const CONFIG: [(&str, Field); 3] = [
    ("num_layers_in_first_pipeline_stage", Field::DecoderFirstPipelineNumLayers),
    ("num_layers_in_last_pipeline_stage", Field::DecoderLastPipelineNumLayers),
    ("bias_activation_fusion", Field::BiasSwigluFusion),
];

/// Reads the engine that shards the actor with Megatron.
pub(super) fn read(leaves: &mut Leaves<'_>) {
    let taken = [
        ("tensor_model_parallel_size", Field::TensorModelParallelSize),
        ("pipeline_model_parallel_size", Field::PipelineModelParallelSize),
        ("virtual_pipeline_model_parallel_size", Field::VirtualPipelineModelParallelSize),
        ("context_parallel_size", Field::ContextParallelSize),
        ("expert_model_parallel_size", Field::ExpertModelParallelSize),
        ("expert_tensor_parallel_size", Field::ExpertTensorParallelSize),
        ("sequence_parallel", Field::SequenceParallel),
        ("use_distributed_optimizer", Field::UseDistributedOptimizer),
    ];
    for (key, field) in taken {
        leaves.take(&[&at(ACTOR, &format!("megatron.{key}"))], field);
    }
    // Only for transformers models (`fsdp_workers.py`). Until mid-2025 Megatron's workers read it and recomputed what
    // `gradient_checkpointing_kwargs` named, which is nothing by default (`single_controller/base/megatron/worker.py`).
    leaves.pass("actor_rollout_ref.model.enable_gradient_checkpointing");
    // Further keys of Megatron's own configuration have Megatron's names.
    let groups = [
        "megatron.override_transformer_config.",
        "megatron.override_ddp_config.",
        "optim.override_optimizer_config.",
    ];
    let named: Vec<(String, Field)> = leaves
        .all()
        .iter()
        .filter_map(|leaf| {
            let rest = leaf.path.strip_prefix(ACTOR)?;
            let name = groups.iter().find_map(|group| rest.strip_prefix(group))?;
            let config = CONFIG.iter().find(|(known, _)| *known == name).map(|(_, field)| *field);
            Some((leaf.path.clone(), config.or_else(|| Field::named(name))?))
        })
        .collect();
    for (path, field) in named {
        leaves.take(&[&path], field);
    }
    defaults(
        leaves,
        VERL,
        &[
            (Field::UseDistributedOptimizer, "true"),
            (Field::SequenceParallel, "true"),
            (Field::Bf16, "true"),
            (Field::AccumulateAllreduceGradsInFp32, "true"),
            (Field::OverlapGradReduce, "false"),
            (Field::AttentionBackend, "flash"),
            (Field::HiddenDropout, "0"),
            (Field::AttentionDropout, "0"),
            (Field::MakeVocabSizeDivisibleBy, "1"),
        ],
    );
    super::verl_builders::fusions(leaves);
    tower(leaves);
    leaves.reading.software = Some((Software::MegatronCoreTe, "verl's Megatron engine".to_owned()));
    if let Some(leaf) = leaves
        .get("actor_rollout_ref.model.lora.rank")
        .or_else(|| leaves.get("actor_rollout_ref.model.lora_rank"))
        .filter(|leaf| leaf.whole().is_some_and(|rank| rank > 0))
    {
        leaves.say(Field::LoraRank, &leaf.value, leaf);
        leaves.say(Field::TrainType, "lora", leaf);
        adapters(leaves);
    }
    let moved =
        |leaves: &Leaves<'_>, key: &str| leaves.flag(&at(ACTOR, &format!("megatron.{key}"))) == Some(true);
    let [weights, optimizer] = ["param_offload", "optimizer_offload"].map(|key| moved(leaves, key));
    // Gradients' buffers are freed with the weights', in every release (`megatron_utils.py:offload_megatron_model_to_cpu`);
    // `grad_offload` is read into an attribute that nothing asks for (`megatron_workers.py`, `engine/megatron/transformer_impl.py`
    // of 0.4 to 0.9).
    leaves.pass(&at(ACTOR, "megatron.grad_offload"));
    offloads(
        leaves,
        [weights, weights, optimizer],
        "megatron.param_offload, which frees gradients too, and optimizer_offload; grad_offload does nothing",
    );
    if weights && leaves.reading.value(Field::TrainType) == Some("lora") {
        frozen_may_stay(leaves, optimizer);
    }
    if let Some(leaf) = leaves.yes("actor_rollout_ref.model.use_fused_kernels") {
        // `verl/models/mcore/model_forward_fused.py`, whatever the options of FSDP's say.
        leaves.say(Field::LossKind, "policy_kernel", leaf);
    }
}

/// The one family to which mbridge gives a balancing loss (`models/glm4moe.py:_build_config`), without a weight of its own.
const BALANCED: &str = "glm4_moe";

fn is_balanced(model: shardscope_catalog::Model) -> bool {
    // Models that are listed as settings have no model type.
    let listed = model.name().starts_with("GLM-4.5");
    model.architecture().map_or(listed, |family| family.model_type == BALANCED)
}

/// Buffers of Megatron's DDP hold what trains, and `megatron_utils.py:offload_megatron_model_to_cpu` moved these alone until
/// volcengine/verl#5412. No key tells the releases before it, from the first with adapters (#4063, November 2025).
fn frozen_may_stay(leaves: &mut Leaves<'_>, optimizer: bool) {
    let message = "param_offload moves frozen weights too since verl 0.8 (February 26, 2026); 0.7 moves the adapters alone and keeps \
                   the rest on the accelerator while it generates";
    let words = if optimizer { "gradients optimizer" } else { "gradients" };
    let hint = format!("if yours is older, set offload_between_phases to {words}");
    leaves.reading.diagnostics.push(Diagnostic::warning(Code::NotEstimated, message).hint(hint));
}

/// What verl gives Megatron core for experts, whichever way it builds the model: mbridge (`core/llm_bridge.py:_build_base_config`,
/// `models/qwen3moe.py`, `qwen3_vl`, `deepseek_v3.py`), its own converter (`models/mcore/config_converter.py`, `model_initializer.py`)
/// or Megatron-Bridge (`megatron_workers.py`, `engine/megatron/transformer_impl.py`).
pub(super) fn experts(leaves: &mut Leaves<'_>) {
    // A model that is known to have none; one that is asked for may have them.
    let said = |field| leaves.reading.value(field).is_some();
    if said(Field::NumLayers) && !said(Field::NumExperts) {
        return;
    }
    let named = leaves.get("actor_rollout_ref.model.path");
    let model = named.and_then(|leaf| shardscope_catalog::find(&leaf.value).model());
    let balanced = Builder::of(leaves) == Builder::Mbridge && model.is_some_and(is_balanced);
    defaults(
        leaves,
        VERL,
        &[
            (Field::MoeTokenDispatcherType, "alltoall"),
            (Field::MoeRouterLoadBalancingType, if balanced { "seq_aux_loss" } else { "none" }),
            (Field::MoeGroupedGemm, "true"),
        ],
    );
}

/// The library that builds a model with a vision tower: mbridge, which freezes nothing, or Megatron-Bridge, whose provider decides
/// that. Both build towers of Qwen3-VL's kind from Megatron core's layers.
fn tower(leaves: &mut Leaves<'_>) {
    let (modules, why) = match Builder::of(leaves) {
        Builder::Converter => return,
        Builder::Bridge => ("provider", "verl builds models by Megatron-Bridge"),
        Builder::Mbridge => ("core", "verl builds models by mbridge"),
    };
    leaves.state(Field::VisionModules, modules, Origin::Default, why);
}

/// Adapters under Megatron, which are Megatron-Bridge's (`verl/workers/config/megatron_peft.py:get_peft_cls`).
fn adapters(leaves: &mut Leaves<'_>) {
    let kind = leaves.get("actor_rollout_ref.model.lora.type").cloned();
    let library = match kind.as_ref().map_or("lora", |leaf| leaf.value.as_str()) {
        "canonical_lora" => "megatron-bridge-canonical",
        _ => "megatron-bridge",
    };
    leaves.state(Field::AdapterLibrary, library, Origin::Derived, "verl builds adapters by Megatron-Bridge");
    match kind {
        Some(leaf) if leaf.value == "dora" => leaves.say(Field::UseDora, "true", &leaf),
        Some(leaf) if !matches!(leaf.value.as_str(), "lora" | "canonical_lora") => {
            lack(leaves, &leaf, Effect::Model, "adapters other than LoRA");
        }
        _ => {}
    }
    leaves.take_all(&[
        ("actor_rollout_ref.model.lora.alpha", Field::LoraAlpha),
        ("actor_rollout_ref.model.lora.dropout", Field::LoraDropout),
        ("actor_rollout_ref.model.lora.target_modules", Field::LoraTargetModules),
    ]);
    for path in ["actor_rollout_ref.model.lora.exclude_modules", "actor_rollout_ref.model.lora.dtype"] {
        if let Some(leaf) = leaves.get(path).filter(|leaf| leaf.value != "[]") {
            lack(leaves, leaf, Effect::Model, "adapters with excluded modules or their own dtype");
        }
    }
    leaves
        .pass_below(&["actor_rollout_ref.model.lora.lora_", "actor_rollout_ref.model.lora.dropout_position"]);
}
