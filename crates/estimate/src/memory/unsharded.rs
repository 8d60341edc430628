//! Weights of layers while FSDP has gathered them: the running one's and the prefetched one's.

use super::term::Term;
use shardscope_explain::Formula;
use shardscope_operators::Symbols;
use shardscope_units::{Bytes, Count, Quantity};

const FSDP: &str = "torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py";
const FLOAT8: &str = "torchao/float8/fsdp_utils.py:WeightWithDynamicFloat8CastTensor.fsdp_pre_all_gather, fsdp_post_all_gather";

static LAYERS: Formula =
    Formula::new("2·W·w", "Weights of the running layer and of the prefetched one, W elements each.", FSDP)
        .letters(&[("W", "elements of the weights of a layer"), ("w", "bytes per element")]);
static LAYER: Formula = Formula::new("W·w", "Weights of the running layer, W elements.", FSDP)
    .letters(&[("W", "elements of the weights of a layer"), ("w", "bytes per element")]);
static MIXED_LAYERS: Formula = Formula::new(
    "2·(W·w - L·(w - 1))",
    "Weights of the running layer and of the prefetched one, W elements each, L of them gathered in 8 bits.",
    FLOAT8,
)
.letters(&[
    ("W", "elements of the weights of a layer"),
    ("L", "elements of its linear layers"),
    ("w", "bytes per element"),
]);
static MIXED_LAYER: Formula = Formula::new(
    "W·w - L·(w - 1)",
    "Weights of the running layer, W elements, L of them gathered in 8 bits.",
    FLOAT8,
)
.letters(&[
    ("W", "elements of the weights of a layer"),
    ("L", "elements of its linear layers"),
    ("w", "bytes per element"),
]);

/// The term of `gathered` layers of `layer` elements, `in_fp8` of which are gathered in 8 bits and stay so.
pub(super) fn of_layers(x: &Symbols<'_>, layer: Count, in_fp8: Count, gathered: u64) -> Term {
    let narrower = in_fp8.bytes(x.width.saturating_sub(1));
    let one = layer.bytes(x.width).less(narrower);
    let (elements, width) = (("W", layer.number()), ("w", Count::new(x.width).number()));
    let (name, plain, mixed) = if gathered > 1 {
        ("gathered weights of two layers", &LAYERS, &MIXED_LAYERS)
    } else {
        ("gathered weights of the layer", &LAYER, &MIXED_LAYER)
    };
    let term = |formula| Term::new(name, Bytes::new(one.get() * gathered), formula);
    if in_fp8 > Count::ZERO {
        term(mixed).given(&[elements, ("L", in_fp8.number()), width]).passing()
    } else {
        term(plain).given(&[elements, width]).passing()
    }
}
