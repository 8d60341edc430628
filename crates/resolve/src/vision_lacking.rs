//! Why a vision tower beside the decoder stops the verdict.

use super::named;
use super::table::Table;
use super::vision::{
    adapted, adapters, gradients, has_projector, is_policy, kept, parts, recomputes, tower_liger,
};
use crate::Effect;
use shardscope_plan::{Field, RlFramework, Software, TowerGradients};
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
        let message = "the vision tower beside the decoder, whose sizes only its config.json states";
        return Some((Effect::Model, message.to_owned()));
    }
    let (parameters, layers) = (table.number(Field::VisionParameters), table.number(Field::VisionLayers));
    let tower = format!(
        "the vision tower beside the decoder ({} parameters in {layers} layers and a projector)",
        grouped(parameters)
    );
    // Branches stand from what excludes all others down: the first that holds is the reason that is given.
    let (effect, how) = if software != Software::HfTransformers {
        (Effect::Model, "in this software")
    } else if has_projector(table)
        && table.has(Field::SeqLength)
        // Tokens of images cut off at the end of a sequence would have to be counted apart.
        && table.number(Field::ImagePatches) >= table.number(Field::SeqLength)
    {
        (Effect::Memory, "with images that fill the sequence, of which tokens are cut off")
    } else if has_projector(table) {
        return (table.word(Field::DataParallelEngine) != "deepspeed").then(|| {
            let how = "with a projector that trains, outside of DeepSpeed, which casts it with the model";
            (Effect::Memory, format!("{tower} {how}"))
        });
    } else if adapted(table) && adapters(table) == [false; 3] {
        (Effect::Memory, "where a part of it trains, or adapters reach it: what it keeps for backward")
    } else if is_policy(table) && !in_engine(table) {
        (Effect::Memory, "in the engine that makes rollouts")
    } else if !matches!(table.word(Field::BaseQuantization), "" | "none") {
        (Effect::Memory, "with quantized layers")
    } else if is_sharded(table) && !has_units(table) {
        (Effect::Memory, "under FSDP, whose units of it are not known")
    } else if table.says(Field::AttnImplementation, "eager") {
        (Effect::Memory, "with eager attention, whose scores grow with the size of the images")
    } else if let Some(how) = unknown_gradients(table) {
        (Effect::Memory, how)
    } else {
        return None;
    };
    Some((effect, format!("{tower} {how}")))
}

/// Optimizers whose states do not depend on the shapes of weights: of a tower they are not known one by one.
const OF_ANY_SHAPE: [&str; 5] = ["", "adam", "paged_adamw", "sgd", "lion"];

fn is_sharded(table: &Table) -> bool {
    matches!(table.word(Field::DataParallelEngine), "fsdp1" | "fsdp2")
}

/// Whether each of its layers is a unit of FSDP.
fn has_units(table: &Table) -> bool {
    let framework = RlFramework::named(table.word(Field::RlFramework));
    kept(table).is_some_and(|kept| kept.unsplit) && framework.is_some_and(RlFramework::wraps_unsplit)
}

/// Whether it is known what the engine that makes rollouts holds of it: vLLM takes its activations from the share of the memory that it
/// is given.
fn in_engine(table: &Table) -> bool {
    matches!(table.word(Field::RolloutEngine), "" | "vllm")
        && kept(table).is_some_and(|kept| kept.cut_layer > 0)
}

/// Why what it keeps for backward is not known; none where it keeps nothing, or what it keeps is.
fn unknown_gradients(table: &Table) -> Option<&'static str> {
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
            Some("where adapters reach it and its layers are not recomputed, of which the first keeps less")
        }
        () if adapts && table.on(Field::UseDora) => Some("where weight-decomposed adapters (DoRA) reach it"),
        () if adapts && half(Field::AdapterDtype) && table.word(Field::DataParallelEngine) != "deepspeed" => {
            Some("where adapters in 16 bits reach it")
        }
        () if gradients != TowerGradients::None && table.on(Field::VisionRecompute) && !recomputes(table) => {
            Some("where its layers are recomputed and the decoder's are not")
        }
        () if liger && tower_liger(table).is_none() => {
            Some("where it saves tensors for backward, with Liger's kernels in its layers")
        }
        () if table.on(Field::OffloadSavedTensors) || table.on(Field::OffloadLayerInputs) => {
            Some("where it keeps tensors for backward, which go to the host")
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
        () if !is_policy(table)
            && !table.says(Field::TrainingObjective, "sft")
            && table.has(Field::TrainingObjective) =>
        {
            Some("where it saves tensors for backward, under another loss than next-token cross entropy")
        }
        () if trains && none => {
            Some("where it trains and no sample has an image, so that nothing of it gets a gradient")
        }
        () if is_sharded(table) && kept(table).is_some_and(|kept| !kept.rms_norms) => Some(
            "where it saves tensors for backward, with LayerNorms under FSDP's mixed precision and autocast",
        ),
        () if fp32 => {
            Some("where it saves tensors for backward, in fp32 or under autocast over fp32 weights")
        }
        () if trains && !OF_ANY_SHAPE.contains(&table.word(Field::Optimizer)) => {
            Some("where it trains, with an optimizer whose states depend on the shapes of its weights")
        }
        () => None,
    }
}
