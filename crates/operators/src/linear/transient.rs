//! What backward holds in the output projection, the scan and the input projection.

use crate::transient::{gathered, gathered_again, has_weight_gradient, masked, residual, scattered};
use crate::{Saved, Symbols, Transient};
use shardscope_explain::Formula;
use shardscope_plan::LinearKind;
use shardscope_units::Bytes;

const AUTOGRAD: &str = "torch autograd: a node's gradients are alive while it runs";
const SCAN: &str = "fla/ops/gated_delta_rule/chunk.py:chunk_gated_delta_rule_bwd";

static OUTPUT: Formula = Formula::new("n·lv·B", "Gradient of the output projection's input.", AUTOGRAD);
static SCANNED: Formula = Formula::new("n·lv·B", "Gradient of the scan's output.", AUTOGRAD);
static INPUTS: Formula =
    Formula::new("n·(2·lk + 2·lv)·B", "Gradients of queries, keys, values and the gate.", AUTOGRAD);
static AGAIN: Formula = Formula::new(
    "n·(2·hv·dk + 2·lv)·B",
    "Keys and values of the chunks, recomputed, and their gradients.",
    SCAN,
);
static STATES: Formula = Formula::new(
    "2·n·hv·dk·dl·B/64",
    "The state at every chunk of 64 tokens, recomputed, and its gradient.",
    SCAN,
);
static PROJECTED: Formula = Formula::new("n·(2·lk + 2·lv)·B", "Gradient of the projected input.", AUTOGRAD);
static INPUT: Formula = Formula::new("n·h·B", "Gradient of the input.", AUTOGRAD);
static WEIGHT: Formula =
    Formula::new("(2·lk + 2·lv)·h·B", "The input projection's weight gradient.", AUTOGRAD);
static LAST_WEIGHT: Formula = Formula::new("lv·h·B", "The output projection's weight gradient.", AUTOGRAD);

pub(crate) fn transients(kind: LinearKind, x: &Symbols<'_>) -> Vec<Transient> {
    // The input waits for in_proj's weight gradient, the last of these steps; everything else is freed by then.
    let own = |saved: &Saved| !saved.first_input;
    let given_back: Bytes =
        super::kinds::saved(kind, x).iter().filter(|saved| own(saved)).map(|saved| saved.bytes).sum();
    // It has no scan: two gates and a convolution, whose gradients are different tensors.
    if kind == LinearKind::ShortConvolution {
        return super::short_convolution::transients(x, given_back);
    }
    let sizes = x.linear;
    let (keys, values) = (sizes.keys(), sizes.values());
    let wide = 2 * keys + 2 * values;
    let weight = has_weight_gradient(x);
    let mut last = vec![residual(x)];
    last.extend(masked(x));
    last.extend(gathered(x, "gathered gradient"));
    last.push(Saved::new("gradient of the output", &[x.n, values], x.width, &OUTPUT));
    let gradient = Saved::new("out_proj weight gradient", &[values, x.h], x.width, &LAST_WEIGHT);
    last.extend(weight.then_some(gradient));

    let states =
        [2, x.n.div_ceil(super::parts::CHUNK), sizes.value_heads, sizes.key_width * sizes.value_width];
    let again = [x.n, 2 * sizes.value_heads * sizes.key_width + 2 * values];
    let scan = vec![
        residual(x),
        Saved::new("gradient of the scan's output", &[x.n, values], x.width, &SCANNED),
        Saved::new("gradients of the scan's inputs", &[x.n, wide], x.width, &INPUTS),
        Saved::new("recomputed chunks", &again, x.width, &AGAIN),
        Saved::new("states of the chunks", &states, x.width, &STATES),
    ];

    let mut first =
        vec![residual(x), Saved::new("gradient of the projection", &[x.n, wide], x.width, &PROJECTED)];
    first.extend(gathered_again(x));
    first.push(Saved::new("gradient of the input", &[x.n, x.h], x.width, &INPUT));
    first.extend(scattered(x));
    first.extend(weight.then(|| Saved::new("in_proj weight gradient", &[wide, x.h], x.width, &WEIGHT)));
    vec![
        Transient::new("backward of out_proj", Bytes::ZERO, last),
        Transient::new("backward of the scan", Bytes::ZERO, scan),
        Transient::new("backward of in_proj", given_back, first),
    ]
}
