//! What FSDP's stage 2 has of gradients while a layer's backward runs: weights stay gathered, but gradients are reduced layer
//! by layer as in stage 3.

use super::term::Term;
use super::unit::{Counts, Unit, Units};
use shardscope_explain::Formula;
use shardscope_operators::{SectionKind, Symbols, dispatches};
use shardscope_plan::{DataEngine, DpSharding};
use shardscope_units::{Count, Quantity};

const FSDP: &str = "torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py";
const COLLECTIVES: &str = "torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py";

pub(super) static GRADIENTS: Formula =
    Formula::new("W·w", "Gradients of the running layer, before they are reduced.", COLLECTIVES)
        .letters(&[("W", "elements of the gradients of a layer"), ("w", "bytes per element")]);

pub(super) static REDUCED: Formula = Formula::new(
    "W·w",
    "The gradients of the previous layer, in the dtype in which they are reduced.",
    COLLECTIVES,
)
.letters(&[("W", "elements of the gradients of a layer"), ("w", "bytes per element")]);

pub(super) static ADDED: Formula = Formula::new(
    "W·w",
    "The output layer's weight gradient of this micro-batch, W elements: the root FSDP unit is reduced when backward is over.",
    FSDP,
).letters(&[("W", "elements of the output layer's weight"), ("w", "bytes per element")]);

/// Gradients of the layer, which accumulate in the unsharded ones if these wait for the last micro-batch (`deferred`), those
/// of the layer before in the dtype of the reduction, and the output layer's where it belongs to the root unit.
pub(super) fn reductions(x: &Symbols<'_>, units: &Units, counts: &Counts, deferred: bool) -> Vec<Term> {
    let (recipe, layout) = (x.recipe(), x.plan.layout());
    let by_fsdp = recipe.shards_by_fsdp();
    if recipe.dp_sharding != DpSharding::Gradients || !by_fsdp || layout.dense_shards() == 1 {
        return Vec::new();
    }
    // Experts of one rank are not reduced.
    let spread = layout.expert_shards() > 1;
    let trained = |unit: &Unit| unit.dense.trains() + if spread { unit.expert.trains() } else { Count::ZERO };
    let layers =
        units.iter().zip(counts).filter(|((kind, _), count)| **count > 0 && kind.is_gathered_alone());
    let own = layers.map(|((_, unit), _)| trained(unit)).max().unwrap_or_default();
    let term = |name, count: Count, width: u64, formula| {
        let given = [("W", count.number()), ("w", Count::new(width).number())];
        Term::new(name, count.bytes(width), formula).given(&given).passing()
    };
    let projects = SectionKind::count(counts, SectionKind::projects_vocabulary) != 0 && recipe.tuning.head;
    let head = Count::of_shape(&[x.labels().unwrap_or(x.v), x.h]);
    let apart = recipe.transformers.ends_apart || dispatches(x);
    let largest = if projects && apart { own.max(head) } else { own };
    let mut out = Vec::with_capacity(3);
    if !deferred {
        out.push(term("gradients of a layer", own, x.width, &GRADIENTS));
    }
    out.push(term("gradients being reduced", largest, recipe.reduce_dtype().width(), &REDUCED));
    if projects && !apart && recipe.transformers.engine == DataEngine::Fsdp2 {
        out.push(term("gradient of the output layer", head, x.width, &ADDED));
    }
    out
}
