//! Mamba (Gu and Dao 2023) on the kernels of `mamba_ssm`: a convolution, a projection to step, B and C, and the
//! selective scan, which saves its inputs and the state at every 2,048 tokens.

use super::parts::{FLOAT, convolution, input, last, output, rows, unsharded, vector};
use crate::shared::kernel;
use crate::{Account, Saved, Symbols, Weight, Work, column};
use shardscope_explain::Formula;
use shardscope_units::Bytes;

const MODULE: &str = "transformers/models/jamba/modeling_jamba.py:JambaMambaMixer.cuda_kernels_forward";
const SCAN: &str = "mamba_ssm/ops/selective_scan_interface.py:SelectiveScanFn";
/// Tokens between two saved states (`csrc/selective_scan/selective_scan.cpp`: `n_chunks`).
const KEPT_EVERY: u64 = 2048;

static INPUT: Formula = Formula::new("S·h·Bi", "The projection's input: the norm output.", MODULE);
static GATHERED: Formula = Formula::new("n·h·Bi", "The projection's input, gathered.", MODULE);
static PROJECTED: Formula =
    Formula::new("2·n·lv·B", "The projection's output: the convolution's input and the gate.", MODULE);
static CONVOLVED: Formula =
    Formula::new("n·lv·B", "The convolution's output, which the scan and the next projection read.", SCAN);
static SMALL: Formula = Formula::new("n·(lr + 2·dk)·B", "Step, B and C before their norms.", MODULE);
static NORMED: Formula = Formula::new("n·(lr + 2·dk)·B", "Step, B and C.", SCAN);
static STEP: Formula = Formula::new("n·lv·B", "The step of every channel.", SCAN);
static STATES: Formula = Formula::new(
    "8·lv·dk·b·(s/2048)",
    "The state and its decay at every 2,048 tokens, fp32, rounded up.",
    SCAN,
);
static SCANNED: Formula = Formula::new("n·lv·B", "The scan's output before the gate.", SCAN);
static OUTPUT: Formula = Formula::new("n·lv·Bi", "The output projection's input.", MODULE);

pub(super) fn weights(x: &Symbols<'_>) -> Vec<Weight> {
    let Some(unsharded) = unsharded(x) else { return Vec::new() };
    let (width, state, rank) = (unsharded.values(), unsharded.key_width, unsharded.rank);
    let [in_bias, conv_bias, out_bias] = unsharded.biases;
    let mut out = vec![Weight::column("in_proj.weight", Account::Attention, [2 * width, x.h], x.t)];
    out.extend(in_bias.then(|| vector("in_proj.bias", 2 * width, x.t)));
    out.push(rows("conv1d.weight", [width, unsharded.convolution], x.t));
    out.extend(conv_bias.then(|| vector("conv1d.bias", width, x.t)));
    out.push(Weight::row("x_proj.weight", Account::Attention, [rank + 2 * state, width], x.t));
    out.push(Weight::column("dt_proj.weight", Account::Attention, [width, rank], x.t));
    out.push(vector("dt_proj.bias", width, x.t));
    out.push(rows("A_log", [width, state], x.t));
    out.push(vector("D", width, x.t));
    if unsharded.norm {
        out.push(Weight::replicated("dt_layernorm.weight", Account::Norms, &[rank]));
        out.push(Weight::replicated("b_layernorm.weight", Account::Norms, &[state]));
        out.push(Weight::replicated("c_layernorm.weight", Account::Norms, &[state]));
    }
    out.extend(output(x, width, out_bias));
    out
}

pub(super) fn saved(x: &Symbols<'_>) -> Vec<Saved> {
    let (sizes, w) = (x.linear, x.width);
    let width = sizes.values();
    let small = sizes.rank + 2 * sizes.key_width;
    let states = [x.b, x.s.div_ceil(KEPT_EVERY), width, 2 * sizes.key_width];
    let mut out = vec![
        column::input(x, "in_proj input", x.input_width, &INPUT, &GATHERED).of_first_projection(),
        Saved::new("projected input", &[x.n, 2 * width], w, &PROJECTED),
        Saved::new("convolved values", &[x.n, width], w, &CONVOLVED),
    ];
    if unsharded(x).is_some_and(|unsharded| unsharded.norm) {
        out.push(Saved::new("step, B and C before norms", &[x.n, small], w, &SMALL));
    }
    out.extend([
        Saved::new("step, B and C", &[x.n, small], w, &NORMED),
        Saved::new("step of channels", &[x.n, width], w, &STEP),
        Saved::new("states", &states, FLOAT, &STATES),
        Saved::new("scanned output", &[x.n, width], w, &SCANNED),
        Saved::new("out_proj input", &[x.n, width], x.input_width, &OUTPUT),
    ]);
    out.extend(crate::attention::residual_mask(x));
    out
}

pub(super) fn work(x: &Symbols<'_>) -> Vec<Work> {
    let Some(unsharded) = unsharded(x) else { return Vec::new() };
    let (sizes, tokens) = (x.linear, x.full_tokens());
    let (width, full) = (sizes.values(), unsharded.values());
    let small = sizes.rank + 2 * sizes.key_width;
    let mut work = vec![
        input(x, "in_proj", 2 * width, 2 * full),
        convolution(x, width),
        Work::linear("x_proj", [x.n, small, width], [tokens, small, full]),
        Work::linear("dt_proj", [x.n, width, sizes.rank], [tokens, full, sizes.rank]),
    ];
    // The scan multiplies element by element and is bound by memory traffic: values, step, gate and the output; in
    // backward all of these, their gradients, and the output's.
    let moved = x.n * (4 * width + 2 * sizes.key_width);
    work.push(kernel("selective_scan", [x.bytes(moved), Bytes::new(2 * x.bytes(moved).get())], [1, 1]));
    work.extend(last(x));
    work
}
