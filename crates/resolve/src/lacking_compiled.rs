//! Layers compiled by `torch.compile` that were not recorded.

use super::precision::{lacks_bf16, overflows_fp16};
use super::table::Table;
use super::vision;
use crate::{Effect, Origin};
use shardscope_catalog as catalog;
use shardscope_plan::{Field, LinearKind, Software, TowerGradients, word};

/// prime-rl reimplements the modules of Llama and Qwen3 as in transformers, and what backward holds of them if they are
/// compiled with their checkpoint was recorded. Its experts, states and other losses, and the models that it takes from
/// transformers itself, were not.
pub(super) fn compiled(table: &mut Table, software: Software) {
    // `unsloth/models/rl.py`: "Model is in float16 precision but you want to use bfloat16".
    let stated = |origin| !matches!(origin, Origin::Default | Origin::Derived);
    let bf16 = table.get(Field::Bf16).is_some_and(|setting| stated(setting.origin)) && table.on(Field::Bf16);
    if software == Software::Unsloth && bf16 && lacks_bf16(table) && !overflows_fp16(table) {
        let message = "bf16 on an accelerator without it, which unsloth rejects";
        table.lack(Field::Bf16, "true", Effect::Memory, message);
    }
    if software == Software::Unsloth && lacks_bf16(table) && table.has(Field::ModulesToSave) {
        // Copies that train are cast from fp16 to fp32 (`unsloth/models/llama.py:_offload_frozen_module_for_training`).
        let message = "an embedding and output layer trained in fp32 under unsloth, where there is no bf16";
        table.lack(Field::ModulesToSave, "", Effect::Memory, message);
    }
    if software == Software::LitgptPretrain {
        by_litgpt(table);
    }
    if software == Software::Unsloth && table.on(Field::CompiledLayers) {
        by_unsloth(table);
    } else if software == Software::Unsloth
        && lacks_bf16(table)
        && !catalog::is_turing(table.word(Field::Accelerator))
    {
        // `unsloth_zoo/compiler.py:lm_head_on_old_cuda_arch`.
        let message = "a loss that unsloth does not compile, on an accelerator before Turing";
        table.lack(Field::Accelerator, "", Effect::Memory, message);
    }
    // `torchtitan/models/llama4/infra/parallelize.py:apply_compile` compiles a layer with experts module by module, within its
    // checkpoint, which sees what these return or nothing of them, by release (`inductor_compiled_code`).
    let parts = table.on(Field::CompiledLayers) && table.number(Field::NumExperts) > 0;
    if software == Software::Torchtitan && parts && table.is(word::RecomputeGranularity::Selective) {
        let message =
            "layers with experts compiled module by module, of whose operations every second is recomputed";
        table.lack(Field::RecomputeGranularity, "selective", Effect::Memory, message);
    }
    // What FSDP gathers in fp8 stays in 16 bits where it is not freed behind forward; DDP gathers nothing.
    let of_torch = software.semantics().eager_modules || software.semantics().fsdp_fp32_shards;
    let stays = software != Software::Torchtitan || table.number(Field::ZeroStage) < 3;
    if of_torch && stays && table.on(Field::Fp8ParamGather) && table.has(Field::Fp8) {
        let message = "weights gathered in fp8, other than by torchtitan with weights that are sharded again behind forward";
        table.lack(Field::Fp8ParamGather, "true", Effect::Memory, message);
    }
    if software == Software::Torchtitan
        && table.on(Field::Fp8ParamGather)
        && table.number(Field::NumExperts) > 0
    {
        let message = "weights gathered in fp8 beside experts, of which torchao converts none";
        table.lack(Field::Fp8ParamGather, "true", Effect::Communication, message);
    }
    let tiled = table.is(word::LossKind::Tiled);
    let checkpointed = table.on(Field::CompiledCheckpoints);
    let others = table.number(Field::NumExperts) > 0
        || table.on(Field::MultiLatentAttention)
        || table.has(Field::LinearMixer)
        || table.on(Field::FinalSoftcap)
        || table.on(Field::AddQkvBias)
        || table.on(Field::PostNorms)
        || table.on(Field::NormsOverHeads)
        || !table.words(Field::ModuleVariants).is_empty()
        || !table.word(Field::UnrecordedModules).is_empty()
        || software != Software::HfTransformers;
    if (tiled || checkpointed) && others {
        let message = "layers other than Llama's and Qwen3's, compiled or before a tiled loss (prime-rl)";
        let field = if checkpointed { Field::CompiledCheckpoints } else { Field::LossKind };
        table.lack(field, "", Effect::Memory, message);
    }
    let frozen = table.is_any(&[word::TrainType::Lora, word::TrainType::QLora, word::TrainType::Freeze]);
    let recomputed = table.on(Field::GradientCheckpointing) || table.is(word::RecomputeGranularity::Full);
    if checkpointed && (frozen || !recomputed) {
        let message = "compiled layers without full checkpointing or with frozen weights";
        table.lack(Field::CompiledCheckpoints, "", Effect::Memory, message);
    }
}

/// Layers compiled by litgpt's pre-training were recorded with attention to everything before a token and with gated MLPs, in
/// models that FSDP shards: its hooks split the graph, which on one GPU is one of the whole model.
fn by_litgpt(table: &mut Table) {
    let world = table
        .count(Field::WorldSize)
        .or_else(|| Some(table.count(Field::NumNodes)?.saturating_mul(table.count(Field::GpusPerNode)?)));
    if world == Some(1) {
        let message = "a whole model compiled as one graph (litgpt pretrain on one GPU)";
        table.lack(Field::CompiledLayers, "", Effect::Memory, message);
    }
    if table.has(Field::CompiledLayers) && !table.on(Field::CompiledLayers) {
        let message = "layers that litgpt's pre-training does not compile";
        table.lack(Field::CompiledLayers, "false", Effect::Memory, message);
    }
    if !table.is_unset_or(&[word::TrainType::Full]) {
        let value = table.word(Field::TrainType).to_owned();
        let message = "frozen weights under litgpt's pre-training, which trains all of them";
        table.lack(Field::TrainType, &value, Effect::Memory, message);
    }
    if table.on(Field::GradientCheckpointing) || table.is(word::RecomputeGranularity::Full) {
        let message = "recomputed layers that litgpt's pre-training compiles, which checkpoints none";
        table.lack(Field::GradientCheckpointing, "true", Effect::Memory, message);
    }
    let on = [
        Field::MultiLatentAttention,
        Field::AttentionOutputGate,
        Field::AddBiasLinear,
        Field::FinalSoftcap,
        Field::AttentionSoftcap,
        Field::PostNorms,
        Field::NormsOverHeads,
    ];
    let others = on.iter().any(|field| table.on(*field))
        || table.number(Field::NumExperts) > 0
        || table.has(Field::LinearMixer)
        || table.has(Field::AttentionWindow)
        || table.has(Field::Normalization) && !table.is(word::Normalization::RmsNorm)
        || !table.words(Field::ModuleVariants).is_empty()
        || !table.word(Field::UnrecordedModules).is_empty();
    if others {
        let message = "layers other than Llama's, Qwen's and Gemma's, compiled by litgpt's pre-training";
        table.lack(Field::CompiledLayers, "", Effect::Memory, message);
    }
}

/// Layers compiled by unsloth were recorded with adapters without dropout, in bf16 and, except for Gemma's, in fp16,
/// which it uses on Turing. Gemma 3 runs in fp32 between its modules there (`precision.rs`).
fn by_unsloth(table: &mut Table) {
    let in_fp32 = overflows_fp16(table);
    let gemma = in_fp32 || table.is(word::AttnImplementation::FlexAttention);
    if lacks_bf16(table) && !catalog::is_turing(table.word(Field::Accelerator)) {
        let message = "layers that unsloth compiles, on an accelerator without bf16";
        table.lack(Field::CompiledLayers, "", Effect::Memory, message);
    }
    if in_fp32 && (vision::adapted(table) || vision::gradients(table) != TowerGradients::None) {
        let message = "a vision tower that saves tensors for backward, with the decoder's stream in fp32";
        table.lack(Field::VisionTower, "", Effect::Memory, message);
    }
    if table.is(word::TrainType::Full) && (in_fp32 || table.on(Field::VisionTower)) {
        let message = "full fine-tuning of a vision tower, or in fp32 between modules, under unsloth";
        table.lack(Field::TrainType, "full", Effect::Memory, message);
    }
    // For a model that is only known here; one known to a reader is reported there by its name.
    let of_others = [
        Field::MultiLatentAttention,
        Field::AttentionOutputGate,
        Field::FusedQkv,
        Field::FusedGateUp,
        Field::NormsOverHeads,
        Field::AttentionSoftcap,
    ];
    let layers = of_others.iter().any(|field| table.on(*field))
            || table.number(Field::NumExperts) > 0
            || table.has(Field::LinearMixer)
                && !table.is(LinearKind::ShortConvolution)
            || !table.word(Field::UnrecordedModules).is_empty()
            || (table.on(Field::PostNorms) || table.has(Field::AttentionWindow)) && !gemma
            || table.has(Field::Normalization) && !table.is(word::Normalization::RmsNorm)
            || table.has(Field::HiddenSize) && !table.on(Field::Swiglu) && !gemma
        // Of models with a tower only those with three-dimensional positions were recorded, which keep their masks.
        || table.on(Field::VisionTower) && !table.on(Field::PaddingMask) && !gemma;
    if layers {
        let message = "modules compiled by unsloth, which save less than transformers' own";
        table.lack(Field::CompiledLayers, "", Effect::Memory, message);
    }
    // A mask of each sample's own keys, whose size depends on the samples.
    if table.on(Field::Packing) && !gemma {
        let message = "packed samples in layers that unsloth compiles";
        table.lack(Field::Packing, "true", Effect::Memory, message);
    }
    if table.real(Field::LoraDropout).is_some_and(|share| share > 0.0) {
        let message = "LoRA dropout in layers that unsloth compiles";
        table.lack(Field::LoraDropout, "", Effect::Memory, message);
    }
}
