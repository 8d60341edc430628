//! Offloading to the host, of tensors that wait for backward.

use super::table::Table;
use crate::{Effect, SettingValue};
use shardscope_plan::{Field, LEAST_OFFLOADED, Offload, OffloadModule, OffloadModules, Software, word};
use shardscope_source::Code;

/// Modules that Megatron offloads but whose tensors are not known here.
const UNKNOWN: [(&str, &str); 2] = [
    ("fused_group_mlp", "experts as one operation of Transformer Engine's operation fuser, offloaded whole"),
    ("gdp_qkv", "gated delta-rule kernels, offloaded"),
];

/// Modules within routed experts (`transformer_config.py: offload_inside_moe`).
const IN_EXPERTS: [&str; 3] = ["expert_fc1", "moe_act", "fused_group_mlp"];

/// What is offloaded; modules have Megatron's names.
pub(super) fn offload(table: &mut Table) -> Offload {
    let modules = if table.on(Field::FineGrainedActivationOffloading) { modules(table) } else { None };
    // Rejected names have been reported; the plan then continues without offloading and is stopped by the error.
    let modules = modules.unwrap_or_default();
    if !modules.is_empty() {
        table.default(
            Field::MinOffloadedTensorSize,
            SettingValue::Int(LEAST_OFFLOADED),
            "default of Megatron Core",
        );
    }
    Offload {
        activation_layers: table.number(Field::CpuOffloadingNumLayers),
        modules,
        least: if table.has(Field::MinOffloadedTensorSize) {
            table.number(Field::MinOffloadedTensorSize)
        } else {
            LEAST_OFFLOADED
        },
        layer_inputs: table.on(Field::OffloadLayerInputs),
        every_input: table.on(Field::OffloadEveryInput),
        saved_tensors: table.on(Field::OffloadSavedTensors),
        optimizer: table.on(Field::OffloadOptimizer),
        states_for_step: table.on(Field::StatesForStep),
        parameters: parameters(table),
    }
}

/// Whether weights are on the host during training. DeepSpeed only moves weights that it shards, whatever its file says
/// below ZeRO stage 3 (`runtime/zero/config.py`; DeepSpeed-Chat's `--offload` sets both at every stage).
fn parameters(table: &mut Table) -> bool {
    let offloads = table.on(Field::OffloadParam);
    let shards = table.is_any(&[word::DataParallelEngine::Fsdp1, word::DataParallelEngine::Fsdp2])
        || table.number(Field::ZeroStage) >= 3;
    if offloads && !shards {
        let message = "weights are offloaded from ZeRO stage 3 on; below it offload_param has no effect";
        table.warn(Code::NoEffect, Field::OffloadParam, message);
        table.remark(Field::OffloadParam, "off below ZeRO stage 3");
    }
    offloads && shards
}

/// The modules; none if their names are rejected (`transformer_config.py:__post_init__`).
fn modules(table: &mut Table) -> Option<OffloadModules> {
    let names: Vec<String> = table.words(Field::OffloadModules).into_iter().map(str::to_owned).collect();
    // One unknown name rejects all, as in Megatron's assertion.
    let known: Option<OffloadModules> = names.iter().map(|name| OffloadModule::named(name)).collect();
    if names.is_empty() || known.is_none() {
        let all = OffloadModule::BEGUN.map(OffloadModule::name).join(", ");
        let unknown: Vec<&str> =
            names.iter().map(String::as_str).filter(|name| OffloadModule::named(name).is_none()).collect();
        let message = if names.is_empty() {
            "--fine-grained-activation-offloading names no modules".to_owned()
        } else {
            format!("--offload-modules does not take {}", unknown.join(", "))
        };
        let fields = [Field::OffloadModules, Field::FineGrainedActivationOffloading];
        table.refuse(Code::OffloadModules, &fields, message, &format!("take some of {all}"));
    }
    if known.is_some() && within_recomputed(table) {
        reject_within_recomputed(table);
        return None;
    }
    known
}

/// Whether modules of experts are offloaded in MoE layers that are recomputed whole.
fn within_recomputed(table: &Table) -> bool {
    table.is(word::RecomputeGranularity::Selective)
        && table.words(Field::RecomputeModules).contains(&"moe")
        && table.words(Field::OffloadModules).iter().any(|name| IN_EXPERTS.contains(name))
}

/// Megatron core rejects such a run since 0.19 (`transformer_config.py:__post_init__`, commit 69c486825c); core 0.18 offloads
/// within the recomputed layers. Up to core 0.17 hybrid models never began a chunk of groups
/// (`models/hybrid/hybrid_model.py:preprocess_for_fine_grained_offloading`, commit 92d5c1f4d1, is in 0.18), so that nothing
/// of any module was offloaded.
fn reject_within_recomputed(table: &mut Table) {
    const OUT: &str = "take moe out of recompute_modules, or expert_fc1, moe_act and fused_group_mlp out of offload_modules";
    const OUT_OF_HYBRID: &str = "take moe out of recompute_modules, or expert_fc1, moe_act and fused_group_mlp out of offload_modules; \
         Megatron core up to 0.17 starts this hybrid model and offloads nothing: its figures are those with \
         fine_grained_activation_offloading off";
    let hybrid = table.has(Field::HybridOverridePattern);
    table.refuse(
        Code::OffloadModules,
        &[Field::OffloadModules, Field::RecomputeModules, Field::FineGrainedActivationOffloading],
        "since core 0.19 Megatron rejects modules of experts that are offloaded while the whole MoE layer is recomputed"
            .to_owned(),
        if hybrid { OUT_OF_HYBRID } else { OUT },
    );
}

/// DeepSpeed's own checkpoints, which models call by themselves (`deepspeed/runtime/activation_checkpointing/checkpointing.py:
/// configure, checkpoint`); those of transformers call PyTorch's (`modeling_utils.py:gradient_checkpointing_enable`), whatever a
/// file for DeepSpeed says.
fn own_checkpoints(table: &mut Table, software: Software) {
    let transformers = software == Software::HfTransformers;
    for (field, message) in [
        (Field::CpuCheckpointing, "transformers checkpoints by PyTorch, so cpu_checkpointing has no effect"),
        (
            Field::DistributeSavedActivations,
            "transformers checkpoints by PyTorch, so partition_activations has no effect",
        ),
    ] {
        if transformers && table.on(field) {
            table.warn(Code::NoEffect, field, message);
        }
    }
    if !transformers && table.on(Field::CpuCheckpointing) {
        table.lack(Field::CpuCheckpointing, "", Effect::Memory, "saved layer inputs offloaded to the host");
    }
}

/// Module offloading that is not modelled.
pub(super) fn lacking(table: &mut Table, software: Software) {
    own_checkpoints(table, software);
    if !table.on(Field::FineGrainedActivationOffloading) || within_recomputed(table) {
        return;
    }
    let named: Vec<String> = table.words(Field::OffloadModules).into_iter().map(str::to_owned).collect();
    for (module, message) in UNKNOWN {
        if named.iter().any(|name| name == module) {
            table.lack(Field::FineGrainedActivationOffloading, module, Effect::Memory, message);
        }
    }
    let graphs = !table.is_unset_or(&[word::CudaGraphImpl::None]);
    let frozen = !table.is_unset_or(&[word::TrainType::Full]);
    let part = table.real(Field::ActivationOffloadFraction).is_some_and(|part| part < 1.0);
    let shifted = table.number(Field::DeltaOffloadBytesAcrossPpRanks) > 0
        && table.degree(Field::PipelineModelParallelSize) > 1;
    for (field, holds, message) in [
        (Field::CudaGraphImpl, graphs, "modules offloaded out of CUDA graphs"),
        (Field::TrainType, frozen, "modules offloaded where weights are frozen"),
        (Field::Fp8, table.has(Field::Fp8), "modules offloaded that save tensors in 8 bits"),
        (
            Field::RecomputeGranularity,
            table.is(word::RecomputeGranularity::Full),
            "modules offloaded in fully recomputed layers",
        ),
        (Field::ActivationOffloadFraction, part, "offloading only a fraction of the modules' runs"),
        (Field::DeltaOffloadBytesAcrossPpRanks, shifted, "modules offloaded less by later pipeline ranks"),
    ] {
        if holds && software == Software::MegatronCoreTe {
            table.lack(Field::FineGrainedActivationOffloading, field.name(), Effect::Memory, message);
        }
    }
}
