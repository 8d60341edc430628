//! Why a vision tower beside the decoder stops the verdict.

use super::named;
use super::table::Table;
use super::vision::{
    adapted, adapters, gradients, has_projector, is_policy, kept, parts, recomputes, tower_liger,
};
use crate::Effect;
use shardscope_plan::{Field, Software, TowerGradients};
use shardscope_units::grouped;

/// Why the tower stops the verdict; none where its figures are known: frozen with its projector, in modules of transformers.
pub(super) fn lacking(table: &Table, software: Software) -> Option<(Effect, String)> {
    if !table.on(Field::VisionTower) {
        return None;
    }
    if !table.has(Field::VisionParameters) {
        // Without a size of the decoder there is no plan, and the model is asked for, whose config.json gives those of both.
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
    // Branches stand from what excludes all others down: the first that holds is the reason that is given.
    // unsloth leaves every tower in 16 bits (`unsloth_zoo/peft_utils.py:SKIP_QUANTIZATION_MODULES`), in transformers' modules where it
    // compiles the model's.
    let compiled = software == Software::Unsloth && table.on(Field::CompiledLayers);
    let (effect, how) = if software != Software::HfTransformers && !compiled {
        return beside_megatron(table).map(|how| (Effect::Model, format!("{tower} {how}")));
    } else if has_projector(table)
        && table.has(Field::SeqLength)
        // Tokens of images cut off at the end of a sequence would have to be counted apart.
        && table.number(Field::ImagePatches) >= table.number(Field::SeqLength)
    {
        (Effect::Memory, "with images that fill the sequence, so that tokens are truncated")
    } else if has_projector(table) {
        return (table.word(Field::DataParallelEngine) != "deepspeed").then(|| {
            let how = "with a trained projector outside DeepSpeed, which would cast it with the model";
            (Effect::Memory, format!("{tower} {how}"))
        });
    } else if adapted(table) && adapters(table) == [false; 3] {
        (Effect::Memory, "where part of it trains or has adapters: what it saves for backward")
    } else if is_policy(table) && !in_engine(table) {
        (Effect::Memory, "in the engine that makes rollouts")
    } else if !compiled
        && !table.on(Field::VisionUnquantized)
        && !matches!(table.word(Field::BaseQuantization), "" | "none")
    {
        (Effect::Memory, "with quantized layers")
    } else if is_sharded(table) && !has_units(table) {
        (Effect::Memory, "under FSDP, whose units in it are not known")
    } else if table.says(Field::AttnImplementation, "eager") {
        (Effect::Memory, "with eager attention, whose scores grow with the size of the images")
    } else if let Some(how) = unknown_gradients(table, compiled) {
        (Effect::Memory, how)
    } else {
        return None;
    };
    Some((effect, format!("{tower} {how}")))
}

/// Why a tower beside a decoder that is not transformers' is not modelled: none where it is transformers' own modules, frozen, so that
/// the first stage holds its weights and nothing else of it.
fn beside_megatron(table: &Table) -> Option<&'static str> {
    let passes = gradients(table) != TowerGradients::None || parts(table) != [false; 3] || adapted(table);
    let deep = kept(table).is_some_and(|kept| kept.deep_mergers > 0);
    match () {
        () if !table.on(Field::VisionWhole) => Some("in this software"),
        () if passes => Some("in Megatron, where part of it trains or gradients pass through it"),
        // What is kept of where their tokens are was not counted.
        () if deep && table.word(Field::RecomputeGranularity) != "full" => {
            Some("whose deep layers reach layers of the decoder that are not recomputed")
        }
        () if !matches!(table.word(Field::Optimizer), "" | "adam" | "sgd") => {
            Some("with an optimizer that treats matrices differently from other weights")
        }
        () => None,
    }
}

/// Optimizers whose states do not depend on the shapes of weights: of a tower they are not known one by one.
const OF_ANY_SHAPE: [&str; 5] = ["", "adam", "paged_adamw", "sgd", "lion"];

fn is_sharded(table: &Table) -> bool {
    matches!(table.word(Field::DataParallelEngine), "fsdp1" | "fsdp2")
}

/// Whether each of its layers is a unit of FSDP. Automodel keeps a tower that is frozen in the unit outside of layers, and builds some
/// models of classes of its own.
fn has_units(table: &Table) -> bool {
    let Some(kept) = kept(table) else { return false };
    match table.word(Field::VisionUnits) {
        "unsplit" => kept.unsplit,
        "lists" => !kept.own_in_automodel && gradients(table) == TowerGradients::Trained,
        _ => false,
    }
}

/// Whether it is known what the engine that makes rollouts holds of it: vLLM takes its activations from the share of the memory that it
/// is given, SGLang has them beside that. Both cut the same linear layers over their tensor ranks
/// (`sglang/srt/models/qwen2_vl.py, qwen2_5_vl.py, qwen3_vl.py`).
fn in_engine(table: &Table) -> bool {
    matches!(table.word(Field::RolloutEngine), "" | "vllm" | "sglang")
        && kept(table).is_some_and(|kept| kept.cut_layer > 0)
}

/// Why what it keeps for backward is not known; none where it keeps nothing, or what it keeps is.
fn unknown_gradients(table: &Table, compiled: bool) -> Option<&'static str> {
    let gradients = gradients(table);
    let parts = parts(table);
    let trains = parts != [false; 3];
    if gradients == TowerGradients::None && !trains {
        return None;
    }
    let half = |field| matches!(table.word(field), "bf16" | "fp16");
    let runs_in_half = table.on(Field::Bf16) || table.on(Field::Fp16) || half(Field::Autocast);
    // DeepSpeed casts the whole model, whatever type its weights were loaded in.
    let casts = !table.has(Field::ParamsDtype) || table.word(Field::DataParallelEngine) == "deepspeed";
    // FSDP gathers them in the format of its mixed precision.
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
        () if adapts && half(Field::AdapterDtype) && table.word(Field::DataParallelEngine) != "deepspeed" => {
            Some("with 16-bit adapters on it")
        }
        () if gradients != TowerGradients::None && table.on(Field::VisionRecompute) && !recomputes(table) => {
            Some("where its layers are recomputed and the decoder's are not")
        }
        () if liger && tower_liger(table).is_none() => {
            Some("where it saves tensors for backward, with Liger's kernels in its layers")
        }
        () if table.on(Field::OffloadSavedTensors) || !compiled && table.on(Field::OffloadLayerInputs) => {
            Some("where the tensors that it saves are offloaded to the host")
        }
        () if kept(table).is_none() => {
            Some("where it saves tensors for backward: those of this type are not recorded")
        }
        () if gradients != TowerGradients::None
            && kept(table).is_some_and(|kept| kept.masked)
            && !table.word(Field::AttnImplementation).starts_with("flash") =>
        {
            Some("where it saves tensors for backward, with a mask of all patches in its attention")
        }
        // Trainers hand the tower the images of both halves of a pair at once (`trl/trainer/dpo_trainer.py:
        // DataCollatorForVisionPreference`, `swift/template/base.py:_rlhf_data_collator`,
        // `llamafactory/data/collator.py:PairwiseDataCollatorWithPadding`).
        () if !is_policy(table) && !matches!(table.word(Field::TrainingObjective), "" | "sft" | "dpo") => {
            Some(
                "where it saves tensors for backward, with a loss other than next-token cross entropy or a pair loss",
            )
        }
        () if trains && none => {
            Some("where it trains and no sample has an image, so that nothing of it gets a gradient")
        }
        // Where trainers cast the model themselves, whether they run under autocast beside that is not told.
        () if is_sharded(table)
            && table.word(Field::Autocast) == "none"
            && kept(table).is_some_and(|kept| !kept.rms_norms) =>
        {
            Some("where it saves tensors for backward, with LayerNorms under FSDP, with or without autocast")
        }
        () if is_sharded(table) && adapts => Some("with adapters on it under FSDP"),
        () if is_sharded(table)
            && table.says(Field::OutputDtype, "fp32")
            && (!parts[1] || recomputes(table)) =>
        {
            Some(
                "where FSDP outputs fp32 from its layers, and its projector is frozen or layers are recomputed",
            )
        }
        () if fp32 => {
            Some("where it saves tensors for backward, in fp32 or under autocast over fp32 weights")
        }
        () if trains && !OF_ANY_SHAPE.contains(&table.word(Field::Optimizer)) => {
            Some("where it trains, with an optimizer whose states depend on the shapes of its weights")
        }
        () => None,
    }
}
