//! What a step holds that one compiler lays out whole (XLA): dense layers computed again from their inputs, in a scan, over weights that
//! all replicas share.
//!
//! Two moments can be the fullest; which tensors stand at each was read from compiled programs, and the sum is compared with what the
//! compiler counts (`tests/suite/maxtext.rs`). Gradients that are not made by then are absent.

use super::term::Term;
use super::unit::{Counts, Units};
use shardscope_explain::Formula;
use shardscope_operators::Symbols;
use shardscope_units::{Bytes, Count, Quantity};

const XLA: &str = "tests/data/maxtext/steps.jsonl: MaxText's train step compiled by libtpu 0.0.42.1";
/// Tensors of the residual stream's size beside the inputs of layers, where a layer's MLP ends its backward pass.
const STREAMS: u64 = 11;
/// Tensors of the MLP's inner width there: four or five, as the compiler orders a layer.
const INNER: u64 = 5;
/// Logits and their gradient.
const LOGITS: u64 = 2;
/// What goes into the output layer, and its gradient.
const ENDS: u64 = 2;
/// Elements of a row that a register of a TPU's vector unit holds.
const LANES: u64 = 128;
/// Bytes of fp32 copies of an embedding's weight and both moments.
const COPIES: u64 = 12;

static COPIED: Formula = Formula::new(
    "P·B/D",
    "Weights of all layers once more in the format of the products, P elements over D devices: cast in front of the scan.",
    XLA,
)
.letters(&[("P", "parameters of all layers"), ("D", "devices that share them")]);
static LAYER: Formula = Formula::new(
    "(W - f·h)·B",
    "Gathered weights of the layer whose MLP runs backward, W elements, but for the MLP's second.",
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
    "Tensors of the layer's width: nine of the layer that runs backward, two behind the layers.",
    XLA,
);
static WIDE: Formula = Formula::new("5·n·f·B", "Tensors of the MLP's inner width.", XLA);
static BOTH: Formula = Formula::new("2·n·V·B", "The logits and their gradient.", XLA);
static HEAD: Formula = Formula::new("V·h·B", "The gathered weight of the output layer.", XLA);
static BEHIND: Formula = Formula::new("2·n·h·B", "What goes into the output layer, and its gradient.", XLA);
static TURNED: Formula = Formula::new(
    "12·V·h/D",
    "fp32 copies of the output matrix and its moments in another layout, where a device's columns do not fill rows of 128.",
    XLA,
)
.letters(&[("D", "devices that share the matrix")]);

/// What stands beside arguments and inputs of layers at the fullest moment, and the gradients that are not made by then.
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
    let copied = term(
        "weights of all layers in the format of the products",
        &[layers.div_ceil(shards)],
        x.width,
        &COPIED,
    )
    .given(&[("P", Count::new(layers).number()), over]);
    let gathered = term("gathered weights of the layer", &[layer.saturating_sub(x.f * x.h)], x.width, &LAYER)
        .given(&[("W", Count::new(layer).number())]);
    let in_layer = vec![
        copied,
        gathered,
        term("gradient of the logits", &[x.n, x.v], x.width, &GRADIENT),
        term("tensors of the layer's width", &[STREAMS, x.n, x.h], x.width, &STREAM),
        term("tensors of the MLP's inner width", &[INNER, x.n, x.f], x.width, &WIDE),
    ];
    let mut at_loss = vec![
        copied,
        term("logits and their gradient", &[LOGITS, x.n, x.v], x.width, &BOTH),
        term("gathered weight of the output layer", &[x.v, x.h], x.width, &HEAD),
        term("input of the output layer and its gradient", &[ENDS, x.n, x.h], x.width, &BEHIND),
    ];
    if !(x.h / shards).is_multiple_of(LANES) {
        let bytes = [COPIES * x.v, x.h.div_ceil(shards)];
        at_loss
            .push(term("copies of the output matrix in another layout", &bytes, 1, &TURNED).given(&[over]));
    }
    let sum = |terms: &[Term]| -> Bytes { terms.iter().map(|term| term.bytes).sum() };
    if sum(&in_layer) + of_layers >= sum(&at_loss) { (in_layer, all.less(of_layers)) } else { (at_loss, all) }
}
