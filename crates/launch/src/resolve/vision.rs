//! A vision tower beside the decoder: whether its figures are known in this run, and what it is made of.

use super::precision::number;
use super::table::Table;
use crate::Effect;
use shardscope_plan::{Field, Number, Software, VisionTower};
use shardscope_units::grouped;

/// What trainers freeze of a model with a vision tower, by its modules' usual names.
pub(crate) const TOWER: &str = "vision_tower";
/// The same of what projects its output.
pub(crate) const PROJECTOR: &str = "multi_modal_projector";

/// What is said where no part is frozen.
const NONE: &str = "none";

/// Settings of a vision tower; they fall together.
pub(super) const FIELDS: [Field; 9] = [
    Field::VisionTower,
    Field::VisionParameters,
    Field::VisionLayers,
    Field::VisionLayerParameters,
    Field::VisionHiddenSize,
    Field::VisionPatches,
    Field::VisionDtype,
    Field::VisionInputGrads,
    Field::FrozenModules,
];

/// Frozen parts that are no part of a vision tower.
pub(super) fn others_frozen(table: &Table) -> Vec<&str> {
    let mut frozen = table.words(Field::FrozenModules);
    frozen.retain(|name| ![TOWER, PROJECTOR, NONE].contains(name));
    frozen
}

/// Takes back what trainers say of the towers of models that have one, where this has none.
pub(super) fn only_with_tower(table: &mut Table) {
    if table.on(Field::VisionTower) {
        return;
    }
    if others_frozen(table).is_empty() {
        table.clear(Field::FrozenModules);
    }
    table.clear(Field::VisionDtype);
    table.clear(Field::VisionInputGrads);
}

/// Why the tower stops the verdict; none where its figures are known: frozen with its projector, in modules of transformers.
pub(super) fn lacking(table: &Table, software: Software) -> Option<(Effect, String)> {
    if !table.on(Field::VisionTower) {
        return None;
    }
    if !table.has(Field::VisionParameters) {
        let message = "the vision tower beside the decoder, whose sizes only its config.json states";
        return Some((Effect::Model, message.to_owned()));
    }
    let (parameters, layers) = (table.number(Field::VisionParameters), table.number(Field::VisionLayers));
    let tower = format!(
        "the vision tower beside the decoder ({} parameters in {layers} layers and a projector)",
        grouped(parameters)
    );
    let frozen = table.words(Field::FrozenModules);
    let trains = [TOWER, PROJECTOR].iter().any(|part| !frozen.contains(part));
    let reached =
        table.switch(Field::VisionInputGrads).unwrap_or_else(|| table.on(Field::GradientCheckpointing));
    let (effect, how) = if software != Software::HfTransformers {
        (Effect::Model, "in this software")
    } else if trains {
        (Effect::Memory, "where it trains or its projector does: what it keeps for backward")
    } else if table.says(Field::TrainingObjective, "policy") {
        (Effect::Memory, "in the engine that makes rollouts")
    } else if !matches!(table.word(Field::BaseQuantization), "" | "none") {
        (Effect::Memory, "with quantised layers")
    } else if matches!(table.word(Field::DataParallelEngine), "fsdp1" | "fsdp2") {
        (Effect::Memory, "under FSDP, in whose units it is frozen beside weights that train")
    } else if table.says(Field::AttnImplementation, "eager") {
        (Effect::Memory, "with eager attention, whose scores grow with the size of the images")
    } else if reached {
        let how = "under gradient checkpointing of transformers 5, which makes its input require a gradient: a frozen tower \
                   keeps tensors then, as many as there are patches";
        (Effect::Memory, how)
    } else {
        return None;
    };
    Some((effect, format!("{tower} {how}")))
}

/// The tower of the plan.
pub(super) fn tower(table: &Table) -> Option<VisionTower> {
    let parameters = table.count(Field::VisionParameters).filter(|_| table.on(Field::VisionTower))?;
    Some(VisionTower {
        parameters,
        layers: table.number(Field::VisionLayers),
        layer_parameters: table.number(Field::VisionLayerParameters),
        hidden_size: table.number(Field::VisionHiddenSize),
        patches_per_token: table.degree(Field::VisionPatches),
        dtype: number(table.word(Field::VisionDtype)).filter(|dtype| *dtype != Number::Fp8),
    })
}
