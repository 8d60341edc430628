//! Memory of a step laid out entirely by one compiler (XLA): dense layers recomputed from their inputs in a scan,
//! with weights sharded over all replicas.
//!
//! There are two candidates for the peak. The tensors alive at each were read from compiled programs, and the sum is
//! compared with the compiler's own count (`tests/suite/maxtext.rs`, `levanter.rs`). Gradients that do not exist yet at
//! that point are subtracted.

use super::term::Term;
use super::unit::{Counts, Units};
use shardscope_explain::Formula;
use shardscope_operators::Symbols;
use shardscope_plan::limits::COMPILED_LANES;
use shardscope_units::{Bytes, Count, Quantity};

const XLA: &str = "tests/data/maxtext/steps.jsonl, tests/data/levanter/steps.jsonl: train steps compiled by libtpu 0.0.42.1";
/// Tensors of the residual stream's size alive at the end of an MLP's backward pass, besides the layers' inputs.
const STREAMS: u64 = 11;
/// Tensors of the MLP's inner width alive there: four or five, depending on how the compiler orders a layer.
const INNER: u64 = 5;
/// Logits and their gradient.
const LOGITS: u64 = 2;
/// The output layer's input and its gradient.
const ENDS: u64 = 2;
/// Bytes per element for fp32 copies of an embedding's weight and both moments.
const COPIES: u64 = 12;

static COPIED: Formula = Formula::new(
    "P·B/D",
    "A copy of all layers' weights in the compute dtype, P elements sharded over D devices: cast before the scan.",
    XLA,
)
.letters(&[("P", "parameters of all layers"), ("D", "devices they are sharded over")]);
static LAYER: Formula = Formula::new(
    "(W - f·h)·B",
    "Gathered weights of the layer whose MLP runs backward, W elements, without the MLP's second matrix.",
    XLA,
)
.letters(&[("W", "elements of the weights of a layer")]);
static GRADIENT: Formula = Formula::new(
    "n·V·B",
    "The gradient of the logits: the output layer's weight gradient comes after the layers.",
    XLA,
);
static STREAM: Formula = Formula::new(
    "11·n·h·B",
    "Tensors of tokens × hidden size: nine in the layer whose backward runs, two after the layers.",
    XLA,
);
static WIDE: Formula = Formula::new("5·n·f·B", "Tensors of the MLP's inner width.", XLA);
static BOTH: Formula = Formula::new("2·n·V·B", "The logits and their gradient.", XLA);
static HEAD: Formula = Formula::new("V·h·B", "The gathered weight of the output layer.", XLA);
static BEHIND: Formula = Formula::new("2·n·h·B", "The output layer's input and its gradient.", XLA);
static TURNED: Formula = Formula::new(
    "12·V·h/D",
    "fp32 copies of the output layer's weight and moments in another layout, where a device's columns do not fill rows of 128.",
    XLA,
)
.letters(&[("D", "devices the matrix is sharded over")]);

/// What is alive at the peak besides arguments and layer inputs, and the gradients that do not exist yet then.
pub(super) fn fullest(x: &Symbols<'_>, units: &Units, counts: &Counts) -> (Vec<Term>, Bytes) {
    let shards = x.plan.layout().dense_shards().max(1);
    let (mut layers, mut layer, mut of_layers, mut all) = (0, 0, Bytes::ZERO, Bytes::ZERO);
    for ((kind, unit), &count) in units.iter().zip(counts) {
        all += unit.gradients * count;
        if kind.layer().is_some() && count > 0 {
            layer = unit.dense.all.get();
            layers += layer * count;
            of_layers += unit.gradients * count;
        }
    }
    let term = |name, elements: &[u64], width: u64, formula| {
        Term::new(name, Count::of_shape(elements).bytes(width), formula).passing()
    };
    let over = ("D", Count::new(shards).number());
    let copied =
        term("weights of all layers in the compute dtype", &[layers.div_ceil(shards)], x.width, &COPIED)
            .given(&[("P", Count::new(layers).number()), over]);
    let gathered = term("gathered weights of the layer", &[layer.saturating_sub(x.f * x.h)], x.width, &LAYER)
        .given(&[("W", Count::new(layer).number())]);
    let mut in_layer = vec![
        copied,
        gathered,
        term("tensors of the layer's width", &[STREAMS, x.n, x.h], x.width, &STREAM),
        term("tensors of the MLP's inner width", &[INNER, x.n, x.f], x.width, &WIDE),
    ];
    // Norms of gradients come after all of them, and the output layer's weight gradient with them.
    if x.recipe().software.semantics().logits_gradient_waits || x.recipe().watched_norms {
        in_layer.insert(2, term("gradient of the logits", &[x.n, x.v], x.width, &GRADIENT));
    }
    let mut at_loss = vec![
        copied,
        term("logits and their gradient", &[LOGITS, x.n, x.v], x.width, &BOTH),
        term("gathered weight of the output layer", &[x.v, x.h], x.width, &HEAD),
        term("input of the output layer and its gradient", &[ENDS, x.n, x.h], x.width, &BEHIND),
    ];
    if !(x.h / shards).is_multiple_of(COMPILED_LANES) {
        let bytes = [COPIES * x.v, x.h.div_ceil(shards)];
        at_loss.push(
            term("copies of the output layer's weight in another layout", &bytes, 1, &TURNED).given(&[over]),
        );
    }
    let sum = |terms: &[Term]| -> Bytes { terms.iter().map(|term| term.bytes).sum() };
    if sum(&in_layer) + of_layers >= sum(&at_loss) { (in_layer, all.less(of_layers)) } else { (at_loss, all) }
}
