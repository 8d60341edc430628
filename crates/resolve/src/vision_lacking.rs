//! Why a vision tower next to the decoder stops the verdict.

use super::named;
use super::table::Table;
use super::vision::{
    adapted, adapters, gradients, has_projector, is_policy, kept, modules, parts, recomputes, tower_liger,
};
use crate::Effect;
use shardscope_plan::{Field, NumberFormat, RolloutEngine, Software, TowerGradients, TowerModules, word};
use shardscope_units::grouped;

/// Why the tower stops the verdict; none if its figures are known: frozen with its projector, in modules of
/// transformers.
pub(super) fn lacking(table: &Table, software: Software) -> Option<(Effect, String)> {
    if !table.on(Field::VisionTower) {
        return None;
    }
    if !table.has(Field::VisionParameters) {
        // Without a decoder size there is no plan, and the model is asked for, whose config.json has the sizes of both.
        if named::is_open(table) {
            return None;
        }
        let message = "the vision tower, whose sizes only the model's config.json states";
        return Some((Effect::Model, message.to_owned()));
    }
    let (parameters, layers) = (table.number(Field::VisionParameters), table.number(Field::VisionLayers));
    let tower =
        format!("the vision tower ({} parameters in {layers} layers and a projector)", grouped(parameters));
    if table.on(Field::VisionInEngine) {
        let how = "in the engine that makes rollouts";
        return (!in_engine(table)).then(|| (Effect::Memory, format!("{tower} {how}")));
    }
    // The branches go from the most to the least exclusive: the first that holds is the reason reported.
    // What unsloth itself quantizes leaves every tower in 16 bits, in transformers' modules if it compiles the model's
    // (`unsloth_zoo/peft_utils.py:SKIP_QUANTIZATION_MODULES` of 2026.10.9; `vision_tower` since 2026.3, `visual` later).
    let compiled = software == Software::Unsloth && table.on(Field::CompiledLayers);
    let (effect, how) = if software != Software::HfTransformers && !compiled {
        return beside_megatron(table, software).map(|how| (Effect::Model, format!("{tower} {how}")));
    } else if has_projector(table)
        && table.has(Field::SeqLength)
        // Image tokens truncated at the end of a sequence would have to be counted separately.
        && table.number(Field::ImagePatches) >= table.number(Field::SeqLength)
    {
        (Effect::Memory, "with images that fill the sequence, so that tokens are truncated")
    } else if has_projector(table) {
        return (!table.is(word::DataParallelEngine::DeepSpeed)).then(|| {
            let how = "with a trained projector outside DeepSpeed, which would cast it with the model";
            (Effect::Memory, format!("{tower} {how}"))
        });
    } else if adapted(table) && adapters(table) == [false; 3] {
        (Effect::Memory, "where part of it trains or has adapters: what it saves for backward")
    } else if is_policy(table) && !in_engine(table) {
        (Effect::Memory, "in the engine that makes rollouts")
    } else if !compiled
        && !table.on(Field::VisionUnquantized)
        && !table.is_unset_or(&[word::BaseQuantization::None])
    {
        (Effect::Memory, "with quantized layers")
    } else if compiled && is_packed(table) {
        (
            Effect::Memory,
            "whose linear layers the checkpoint's own list (whole_linears) does not leave in 16 bits",
        )
    } else if is_sharded(table) && !has_units(table) {
        (Effect::Memory, "under FSDP, whose units in it are not known")
    } else if table.is(word::AttnImplementation::Eager) {
        (Effect::Memory, "with eager attention, whose scores grow with the size of the images")
    } else if let Some(how) = unknown_gradients(table, compiled) {
        (Effect::Memory, how)
    } else {
        return None;
    };
    Some((effect, format!("{tower} {how}")))
}

/// Why a tower next to a decoder that is not transformers' is not modelled: none if it consists of transformers' own
/// modules and is frozen, so that the first stage only holds its weights, or of Megatron core layers, all or none of
/// which train.
fn beside_megatron(table: &Table, software: Software) -> Option<&'static str> {
    let of_modules = match modules(table) {
        TowerModules::Own => Some("in this software"),
        TowerModules::Whole => of_transformers(table),
        TowerModules::Core => of_core(table, software),
    };
    let by_shape = !table.is_unset_or(&[word::Optimizer::Adam, word::Optimizer::Sgd]);
    of_modules.or(by_shape.then_some("with an optimizer that treats matrices differently from other weights"))
}

fn of_transformers(table: &Table) -> Option<&'static str> {
    let passes = gradients(table) != TowerGradients::None || parts(table) != [false; 3] || adapted(table);
    let deep = kept(table).is_some_and(|kept| kept.deep_mergers > 0);
    match () {
        () if passes => Some("in Megatron, where part of it trains or gradients pass through it"),
        // The saved positions of their tokens were not counted.
        () if deep && !table.is(word::RecomputeGranularity::Full) => {
            Some("whose deep layers reach layers of the decoder that are not recomputed")
        }
        () => None,
    }
}

/// The same for a tower of Megatron core's layers (`modelling_qwen3_vl/transformer_config.py:get_vision_model_config`):
/// its recomputation and number of tensor ranks follow the decoder's configuration.
fn of_core(table: &Table, software: Software) -> Option<&'static str> {
    let of_kinds = kept(table).filter(|kept| kept.patch_values > 0 && kept.cut_layer > 0);
    let [tower, projector, deep] = parts(table);
    // All of it trains or none, or its mergers alone.
    let one_kind =
        of_kinds.is_some_and(|kept| kept.deep_mergers == 0 || deep == projector) && (projector || !tower);
    // A provider for models with experts freezes decoder and tower unless told otherwise
    // (`qwen3_vl_provider.py:Qwen3VLMoEModelProvider`).
    let provided = table.is(word::VisionModules::Provider) && !table.has(Field::FrozenModules);
    let freezes =
        provided && table.number(Field::NumExperts) > 0 && of_kinds.is_some_and(|kept| kept.deep_mergers > 0);
    let one_by_one = table.is(word::RecomputeMethod::Uniform) && table.number(Field::RecomputeNumLayers) <= 1;
    match () {
        () if of_kinds.is_none() => Some("in Megatron, of a type whose layers there are not known"),
        () if !software.semantics().transformer_engine => Some("in Megatron core without Transformer Engine"),
        () if adapted(table) || table.has(Field::TrainType) && !table.is(word::TrainType::Full) => {
            Some("in Megatron, with adapters")
        }
        () if freezes => Some("in Megatron, where the model's provider decides which parts are frozen"),
        () if !one_kind => Some("in Megatron, where part of it trains and part does not"),
        () if table.number(Field::ContextParallelSize) > 1 => {
            Some("in Megatron, with images that context parallelism deals out")
        }
        // mbridge makes the tower's configuration from the decoder's, number formats included (`base_bridge.py:_model_provider`).
        // Megatron-Bridge's is made anew and stays in 16 bits beside whatever decoder.
        () if table.is(word::VisionModules::Core) && (table.has(Field::Fp8) || table.has(Field::Fp4)) => {
            Some("in mbridge, which runs its layers in the decoder's 8 or 4 bits, too")
        }
        () if tower && is_unfused(table) => {
            Some("in Megatron, with attention whose scores grow with the size of the images")
        }
        () if tower
            && (table.is(word::RecomputeGranularity::Selective) || table.on(Field::RecomputeActivations)) =>
        {
            Some(
                "in Megatron, with selective recomputation, of which its layers follow the granularity alone",
            )
        }
        () if tower && table.is(word::RecomputeGranularity::Full) && !one_by_one => {
            Some("in Megatron, with layers recomputed in groups or some of them")
        }
        () if table.on(Field::FineGrainedActivationOffloading)
            || table.number(Field::CpuOffloadingNumLayers) > 0 =>
        {
            Some("in Megatron, with activations offloaded to the host")
        }
        () => None,
    }
}

/// Whether attention has no separate kernel (`NVTE_FLASH_ATTN`, `NVTE_FUSED_ATTN`).
fn is_unfused(table: &Table) -> bool {
    let off = |field| table.has(field) && !table.on(field);
    table.is_any(&[word::AttentionBackend::Unfused, word::AttentionBackend::Local])
        || off(Field::NvteFlashAttn) && off(Field::NvteFusedAttn)
}

/// Optimizers whose states do not depend on the shapes of weights: a tower's weight shapes are not known one by one.
const OF_ANY_SHAPE: [word::Optimizer; 4] =
    [word::Optimizer::Adam, word::Optimizer::PagedAdamW, word::Optimizer::Sgd, word::Optimizer::Lion];

/// Whether the list of what a 4-bit checkpoint keeps in 16 bits lacks the tower, so that its layers are packed as the decoder's are.
fn is_packed(table: &Table) -> bool {
    const TOWERS: [&str; 4] = ["visual", "vision_tower", "vision_model", "vision_encoder"];
    let whole = |name: &&str| TOWERS.iter().any(|tower| name.rsplit('.').next() == Some(*tower));
    table.has(Field::WholeLinears)
        && table.is_any(&[word::BaseQuantization::Nf4, word::BaseQuantization::Fp4])
        && !table.words(Field::WholeLinears).iter().any(whole)
}

fn is_sharded(table: &Table) -> bool {
    table.is_any(&[word::DataParallelEngine::Fsdp1, word::DataParallelEngine::Fsdp2])
}

/// Whether each of its layers is an FSDP unit. Automodel keeps a frozen tower in the unit outside the layers, and
/// builds some models from its own classes.
fn has_units(table: &Table) -> bool {
    let Some(kept) = kept(table) else { return false };
    match table.chosen::<word::VisionUnits>() {
        Some(word::VisionUnits::Unsplit) => kept.unsplit,
        Some(word::VisionUnits::Lists) => {
            !kept.own_in_automodel && gradients(table) == TowerGradients::Trained
        }
        _ => false,
    }
}

/// Whether it is known what the rollout engine holds of it: vLLM takes its activations from its configured share of
/// memory, SGLang holds them in addition. Both shard the same linear layers over their tensor ranks
/// (`sglang/srt/models/qwen2_vl.py, qwen2_5_vl.py, qwen3_vl.py`).
fn in_engine(table: &Table) -> bool {
    table.is_unset_or(&[RolloutEngine::Vllm, RolloutEngine::Sglang])
        && kept(table).is_some_and(|kept| kept.cut_layer > 0)
}

/// Why the tensors it keeps for backward are not known; none if it keeps nothing, or if they are known.
fn unknown_gradients(table: &Table, compiled: bool) -> Option<&'static str> {
    let gradients = gradients(table);
    let parts = parts(table);
    let trains = parts != [false; 3];
    if gradients == TowerGradients::None && !trains {
        return None;
    }
    let half = |field| matches!(table.format(field), Some(NumberFormat::Bf16 | NumberFormat::Fp16));
    let autocast = table.is_any(&[word::Autocast::Bf16, word::Autocast::Fp16]);
    let runs_in_half = table.on(Field::Bf16) || table.on(Field::Fp16) || autocast;
    // DeepSpeed casts the entire model, in whatever type its weights were loaded.
    let casts = !table.has(Field::ParamsDtype) || table.is(word::DataParallelEngine::DeepSpeed);
    // FSDP gathers them in its mixed-precision format.
    let fp32 = !(half(Field::ParamsDtype) || (casts || is_sharded(table)) && runs_in_half);
    let none = table.has(Field::ImagePatches) && table.number(Field::ImagePatches) == 0;
    let liger = table.on(Field::LigerKernel) || table.has(Field::LigerParts);
    let adapts = gradients == TowerGradients::Adapted;
    let kept_whole = table.has(Field::VisionRecompute) && !table.on(Field::VisionRecompute);
    match () {
        () if adapts && (!recomputes(table) || kept_whole) => {
            Some("with adapters on it and its layers not recomputed, of which the first saves less")
        }
        () if adapts && table.on(Field::UseDora) => Some("with weight-decomposed adapters (DoRA) on it"),
        () if adapts && half(Field::AdapterDtype) && !table.is(word::DataParallelEngine::DeepSpeed) => {
            Some("with 16-bit adapters on it")
        }
        () if gradients != TowerGradients::None && table.on(Field::VisionRecompute) && !recomputes(table) => {
            Some("where its layers are recomputed and the decoder's are not")
        }
        () if liger && tower_liger(table).is_none() => {
            Some("where it saves tensors for backward, with Liger's kernels in its layers")
        }
        () if table.on(Field::OffloadSavedTensors)
            || table.on(Field::OffloadEveryInput)
            || !compiled && table.on(Field::OffloadLayerInputs) =>
        {
            Some("where the tensors that it saves are offloaded to the host")
        }
        () if kept(table).is_none() => {
            Some("where it saves tensors for backward: those of this type are not recorded")
        }
        () if gradients != TowerGradients::None
            && kept(table).is_some_and(|kept| kept.masked)
            && !table.is_any(&[
                word::AttnImplementation::FlashAttention2,
                word::AttnImplementation::FlashAttention3,
                word::AttnImplementation::FlashAttention4,
            ]) =>
        {
            Some("where it saves tensors for backward, with a mask of all patches in its attention")
        }
        () if gradients != TowerGradients::None
            && kept(table).is_some_and(|kept| kept.flash_alone)
            && !table.is(word::AttnImplementation::FlashAttention2) =>
        {
            Some("where it saves tensors for backward, with scores of attention written out")
        }
        // Its own code casts norms' outputs back, which was recorded without autocast alone.
        () if autocast
            && !table.is(word::DataParallelEngine::DeepSpeed)
            && kept(table).is_some_and(|kept| kept.flash_alone) =>
        {
            Some("where it or its projector saves tensors for backward, under autocast")
        }
        // Trainers pass the images of both halves of a pair to the tower at once
        // (`trl/trainer/dpo_trainer.py:DataCollatorForVisionPreference`, `swift/template/base.py:_rlhf_data_collator`,
        // `llamafactory/data/collator.py:PairwiseDataCollatorWithPadding`).
        () if !is_policy(table)
            && !table.is_unset_or(&[word::TrainingObjective::Sft, word::TrainingObjective::Dpo]) =>
        {
            Some(
                "where it saves tensors for backward, with a loss other than next-token cross entropy or a pair loss",
            )
        }
        () if trains && none => {
            Some("where it trains and no sample has an image, so that nothing of it gets a gradient")
        }
        // If trainers cast the model themselves, it is not stated whether they also run under autocast.
        () if is_sharded(table)
            && table.is(word::Autocast::None)
            && kept(table).is_some_and(|kept| !kept.rms_norms) =>
        {
            Some("where it saves tensors for backward, with LayerNorms under FSDP, with or without autocast")
        }
        () if is_sharded(table) && adapts => Some("with adapters on it under FSDP"),
        () if is_sharded(table)
            && table.is_format(Field::OutputDtype, NumberFormat::Fp32)
            && (!parts[1] || recomputes(table)) =>
        {
            Some(
                "where FSDP outputs fp32 from its layers, and its projector is frozen or layers are recomputed",
            )
        }
        () if fp32 => {
            Some("where it saves tensors for backward, in fp32 or under autocast over fp32 weights")
        }
        () if trains && !table.is_unset_or(&OF_ANY_SHAPE) => {
            Some("where it trains, with an optimizer whose states depend on the shapes of its weights")
        }
        () => None,
    }
}
