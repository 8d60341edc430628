//! What sharded weights cost while they are whole: FSDP and ZeRO-3 gather a layer's weights before it runs and
//! share its gradients after.

use super::term::Term;
use super::unit::{Counts, Unit, Units};
use shardscope_explain::Formula;
use shardscope_operators::Symbols;
use shardscope_plan::{DataEngine, DpSharding, Software};
use shardscope_units::{Count, Quantity};

const FSDP: &str = "torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py";
const COLLECTIVES: &str = "torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py";

static LAYERS: Formula =
    Formula::new("2·W·w", "Weights of the layer that runs and of the next one, W elements each.", FSDP);
static LAYER: Formula = Formula::new("W·w", "Weights of the layer that runs, W elements.", FSDP);
static ENDS: Formula = Formula::new(
    "W·w",
    "Weights outside of the layers, W elements: gathered once, kept until backward is over.",
    FSDP,
);
static GRADIENTS: Formula =
    Formula::new("W·w", "Gradients of the layer that runs, before they are shared.", COLLECTIVES);
static REDUCED: Formula =
    Formula::new("4·W", "The gradients of the layer before in fp32, as they are reduced.", COLLECTIVES);

/// Whether weights outside of the layers are a unit of PyTorch's FSDP, which stays gathered.
fn wraps_ends(x: &Symbols<'_>) -> bool {
    let engine = x.recipe().transformers.engine;
    match x.recipe().software {
        Software::Torchtitan | Software::TorchFsdp => true,
        software if software.semantics().eager_modules => {
            matches!(engine, DataEngine::Fsdp1 | DataEngine::Fsdp2)
        }
        _ => false,
    }
}

/// The terms of a stage with `counts` sections.
pub(super) fn gathered(x: &Symbols<'_>, units: &Units, counts: &Counts) -> Vec<Term> {
    if x.recipe().dp_sharding != DpSharding::Parameters || x.plan.layout().dense_shards() == 1 {
        return Vec::new();
    }
    let elements = |unit: &Unit| unit.dense.all + unit.expert.all;
    let trained =
        |unit: &Unit| unit.dense.trained + unit.dense.adapters + unit.expert.trained + unit.expert.adapters;
    let (mut layer, mut own, mut ends, mut layers) = (Count::ZERO, Count::ZERO, Count::ZERO, 0);
    for ((kind, unit), &count) in units.iter().zip(counts) {
        if count == 0 {
            continue;
        }
        if kind.has_layer() {
            layer = layer.max(elements(unit));
            own = own.max(trained(unit));
            layers += count;
        } else {
            ends += elements(unit) * count;
        }
    }
    let term = |name, count: Count, width: u64, formula| {
        let given = [("W", count.number()), ("w", Count::new(width).number())];
        Term::new(name, count.bytes(width), formula).given(&given).passing()
    };
    // A stage of one layer has no next one.
    let weights = if layers > 1 {
        Term::new("gathered weights of two layers", layer.bytes(2 * x.width), &LAYERS)
            .given(&[("W", layer.number()), ("w", Count::new(x.width).number())])
            .passing()
    } else {
        term("gathered weights of the layer", layer, x.width, &LAYER)
    };
    let mut out = vec![weights, term("gradients of a layer", own, x.width, &GRADIENTS)];
    if wraps_ends(x) {
        out.push(term("gathered weights outside of layers", ends, x.width, &ENDS));
        out.push(term("gradients being reduced", own, 4, &REDUCED));
    }
    out
}
