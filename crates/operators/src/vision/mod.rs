//! A vision tower with its projector (`transformers/models/*/modeling_*.py`). If it is frozen and no input requires a
//! gradient, its forward pass saves nothing: 0 bytes were recorded for nine model types
//! (`tests/data/activations/vision_towers.tsv`); what it saves otherwise is in [`kept`]. Its arithmetic is left out,
//! because no launch file states how many images a sample has, and the plan is marked accordingly.
//!
//! A projector that trains after it (LLaVA's) is a separate operator next to the word embedding, and what it saves is
//! known: each sample has one image.

mod adapters;
mod core;
mod kept;
mod projector;

use crate::{Account, Message, Operator, Saved, Symbols, Transient, Weight, WeightPart, WeightRole, Work};
use shardscope_explain::Formula;
use shardscope_plan::{TowerGradients, TowerModules, VisionKept};
use shardscope_units::Bytes;

/// Bytes for each patch and each element of the width that one layer's forward pass holds at its peak. The largest
/// recorded value for a model type is 41.4 (Qwen3-VL, which rotates queries and keys in fp32), the smallest 22.9
/// (SigLIP).
pub const TOWER_ALIVE: u64 = 48;

static FORWARD: Formula = Formula::new(
    "48·np·hi",
    "Tensors of one layer's forward pass at most, as if every token of the sequence were an image token.",
    "transformers, recorded in tests/data/activations/vision_towers.tsv",
);

/// Its weights: those of one layer, or everything outside of the layers.
pub(crate) fn weights(operator: Operator, x: &Symbols<'_>) -> Vec<Weight> {
    let Some(tower) = x.model().vision else { return Vec::new() };
    if operator == Operator::Projector {
        return core::projector_weights(x).unwrap_or_else(|| projector::weights(x));
    }
    let of = |name, trains, count| {
        let weight =
            Weight::replicated(name, Account::VisionTower, &[count]).as_part(WeightPart::VisionTower);
        let role = if trains { WeightRole::Trained } else { WeightRole::Frozen };
        Weight { role, ..weight }
    };
    let trained = tower.gradients == TowerGradients::Trained;
    let kept = tower.kept.unwrap_or_default();
    match tower.modules {
        TowerModules::Core => return core::weights(operator, x),
        TowerModules::Own if x.t > 1 => return cut(operator, x, &kept),
        TowerModules::Own | TowerModules::Whole => {}
    }
    if operator == Operator::VisionLayer {
        return vec![of("vision layer", trained, tower.layer_parameters)];
    }
    // Trained parts are counted separately only if the rest is frozen, or vice versa.
    let apart = tower.projector.map_or(0, |projector| projector.parameters(tower.hidden_size, x.h));
    let outside = tower.outside_layers().saturating_sub(apart);
    let mut rest = outside;
    let mut weights = Vec::new();
    for (name, trains, count) in [
        ("projector", tower.projector_trains, kept.projector),
        ("mergers of deep layers", tower.deep_trains, kept.deep_projector),
    ] {
        if trains != trained && count > 0 && tower.gradients != TowerGradients::Adapted {
            rest = rest.saturating_sub(count);
            // Counted next to the word embedding if only it trains.
            if !(trains && tower.projects_alone()) {
                weights.push(of(name, trains, count));
            }
        }
    }
    weights.insert(0, of("patch embedding and projector", trained, rest));
    weights
}

/// The same on one of several tensor ranks, which only rollout engines have.
fn cut(operator: Operator, x: &Symbols<'_>, kept: &VisionKept) -> Vec<Weight> {
    let Some(tower) = x.model().vision else { return Vec::new() };
    let (name, all, cut) = if operator == Operator::VisionLayer {
        ("vision layer", tower.layer_parameters, kept.cut_layer)
    } else {
        ("patch embedding and projector", tower.outside_layers(), kept.cut_ends)
    };
    let whole = Weight::replicated(name, Account::VisionTower, &[all.saturating_sub(cut)]);
    let mut weights = vec![whole];
    if cut > 0 {
        weights.push(Weight::split_vector("of it, cut over tensor ranks", Account::VisionTower, cut, x.t));
    }
    weights.into_iter().map(|weight| weight.as_part(WeightPart::VisionTower)).collect()
}

/// What it saves for backward: nothing if none of its operations needs a tensor for a gradient.
pub(crate) fn saved(operator: Operator, x: &Symbols<'_>) -> Vec<Saved> {
    match operator {
        Operator::Projector if x.model().vision.is_some_and(|tower| tower.projects_alone()) => {
            core::projector(x).unwrap_or_else(|| kept::projector(x))
        }
        Operator::Projector => projector::saved(x),
        Operator::VisionLayer if core::tower(x).is_some() => core::layer(x),
        _ if core::tower(x).is_some() => core::ends(x),
        Operator::VisionLayer => with_adapters(operator, x, kept::layer(x)),
        _ => with_adapters(operator, x, kept::ends(x)),
    }
}

fn with_adapters(operator: Operator, x: &Symbols<'_>, mut saved: Vec<Saved>) -> Vec<Saved> {
    saved.extend(adapters::saved(operator, x));
    saved
}

/// Weights of adapters on it.
pub(crate) fn adapter_weights(operator: Operator, x: &Symbols<'_>) -> Vec<Weight> {
    adapters::weights(operator, x)
}

/// Bytes that adapters on its layers or on its projector save.
pub(crate) fn adapter_bytes(operator: Operator, x: &Symbols<'_>) -> u64 {
    adapters::bytes(operator, x)
}

/// What a layer's forward pass holds.
pub(crate) fn transients(operator: Operator, x: &Symbols<'_>) -> Vec<Transient> {
    if operator != Operator::VisionLayer {
        return Vec::new();
    }
    if x.tower_gradients() != TowerGradients::None {
        return if core::tower(x).is_some() { core::backward(x) } else { kept::backward(x) };
    }
    let alive = projector::alive(x).unwrap_or_else(|| {
        Saved::new("tensors of a vision layer", &[x.patches(), x.vision_width()], TOWER_ALIVE, &FORWARD)
    });
    vec![Transient::new("forward of the vision tower", Bytes::ZERO, vec![alive])]
}

/// Left out: the number of images is not known.
pub(crate) const fn work(_: Operator, _: &Symbols<'_>) -> Vec<Work> {
    Vec::new()
}

/// None, but where it is cut over tensor ranks.
pub(crate) fn messages(operator: Operator, x: &Symbols<'_>) -> Vec<Message> {
    core::messages(operator, x)
}
