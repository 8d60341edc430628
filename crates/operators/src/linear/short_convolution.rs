//! A short convolution between two gates (LFM2): one projection computes both gates and the values that they act on.
//! A kernel saves the convolution's input (`causal_conv1d/causal_conv1d_interface.py:CausalConv1dFn`).

use super::parts::{convolution, input, last, output, rows, unsharded, vector};
use crate::shared::kernel;
use crate::transient::{has_weight_gradient, residual};
use crate::{Account, Saved, Symbols, Transient, Weight, Work, column};
use shardscope_explain::Formula;
use shardscope_units::Bytes;

const MODULE: &str = "transformers/models/lfm2/modeling_lfm2.py:Lfm2ShortConv.forward";
const AUTOGRAD: &str = "torch autograd: a node's gradients are alive while it runs";

static INPUT: Formula = Formula::new("S·h·Bi", "The projection's input: the norm output.", MODULE);
static GATHERED: Formula = Formula::new("n·h·Bi", "The projection's input, gathered.", MODULE);
static PROJECTED: Formula =
    Formula::new("n·(2·lk + lv)·B", "The projection's output: both gates and what they act on.", MODULE);
static GATED: Formula = Formula::new("n·lv·B", "The convolution's input, after the first gate.", MODULE);
static CONVOLVED: Formula = Formula::new("n·lv·B", "The convolution's output, for the second gate.", MODULE);
static OUTPUT: Formula = Formula::new("n·lv·Bi", "The output projection's input.", MODULE);
static GRADIENT: Formula = Formula::new("n·lv·B", "Gradient of the output projection's input.", AUTOGRAD);
static LAST_WEIGHT: Formula = Formula::new("lv·h·B", "The output projection's weight gradient.", AUTOGRAD);
static AROUND: Formula =
    Formula::new("2·n·lv·B", "Gradients of the convolution's output and input.", AUTOGRAD);
static PARTS: Formula = Formula::new(
    "n·(2·lk + lv)·B",
    "Gradients of the gates and of what they act on, in the projection's layout.",
    AUTOGRAD,
);
static WEIGHT: Formula = Formula::new("(2·lk + lv)·h·B", "The input projection's weight gradient.", AUTOGRAD);
static LAST: Formula = Formula::new("n·h·B", "Gradient of the input.", AUTOGRAD);

/// Columns of the input projection: two gates and the values.
fn projected(keys: u64, values: u64) -> u64 {
    2 * keys + values
}

pub(super) fn weights(x: &Symbols<'_>) -> Vec<Weight> {
    let Some(unsharded) = unsharded(x) else { return Vec::new() };
    let (columns, values) = (projected(unsharded.keys(), unsharded.values()), unsharded.values());
    let [in_bias, conv_bias, out_bias] = unsharded.biases;
    let mut out = vec![Weight::column("in_proj.weight", Account::Attention, [columns, x.h], x.t)];
    out.extend(in_bias.then(|| vector("in_proj.bias", columns, x.t)));
    out.push(rows("conv.weight", [values, unsharded.convolution], x.t));
    out.extend(conv_bias.then(|| vector("conv.bias", values, x.t)));
    out.extend(output(x, values, out_bias));
    out
}

pub(super) fn saved(x: &Symbols<'_>) -> Vec<Saved> {
    let (columns, values) = (projected(x.linear.keys(), x.linear.values()), x.linear.values());
    let mut out = vec![
        column::input(x, "in_proj input", x.input_width, &INPUT, &GATHERED).of_first_projection(),
        Saved::new("projected input", &[x.n, columns], x.width, &PROJECTED),
        Saved::new("convolution input", &[x.n, values], x.width, &GATED),
        Saved::new("convolved values", &[x.n, values], x.width, &CONVOLVED),
        Saved::new("out_proj input", &[x.n, values], x.input_width, &OUTPUT),
    ];
    out.extend(crate::attention::residual_mask(x));
    out
}

pub(super) fn work(x: &Symbols<'_>) -> Vec<Work> {
    let Some(unsharded) = unsharded(x) else { return Vec::new() };
    let (keys, values) = (x.linear.keys(), x.linear.values());
    // A gate reads two and writes one; backward reads three and writes two.
    let gate = |name| kernel(name, [x.bytes(3 * x.n * values), x.bytes(5 * x.n * values)], [1, 2]);
    let full = projected(unsharded.keys(), unsharded.values());
    let mut work = vec![input(x, "in_proj", projected(keys, values), full), gate("first_gate")];
    work.push(convolution(x, values));
    work.push(gate("second_gate"));
    work.extend(last(x));
    work
}

/// What backward holds in the output projection, around the convolution, and in the input projection. Sequence parallelism has no
/// such mixer, so nothing is gathered.
pub(super) fn transients(x: &Symbols<'_>, given_back: Bytes) -> Vec<Transient> {
    let (values, w, weight) = (x.linear.values(), x.width, has_weight_gradient(x));
    let columns = projected(x.linear.keys(), values);
    let mut last = vec![residual(x), Saved::new("gradient of the output", &[x.n, values], w, &GRADIENT)];
    last.extend(weight.then(|| Saved::new("out_proj weight gradient", &[values, x.h], w, &LAST_WEIGHT)));
    let parts = Saved::new("gradients of the gates and the values", &[x.n, columns], w, &PARTS);
    let around = Saved::new("gradients around the convolution", &[2, x.n, values], w, &AROUND);
    let mut first = vec![residual(x), parts, Saved::new("gradient of the input", &[x.n, x.h], w, &LAST)];
    first.extend(weight.then(|| Saved::new("in_proj weight gradient", &[columns, x.h], w, &WEIGHT)));
    vec![
        Transient::new("backward of out_proj", Bytes::ZERO, last),
        Transient::new("backward of the convolution", Bytes::ZERO, vec![residual(x), around, parts]),
        Transient::new("backward of in_proj", given_back, first),
    ]
}
