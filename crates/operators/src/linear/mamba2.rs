//! Mamba-2 (Dao and Gu 2024) as Megatron builds it (`megatron/core/ssm/mamba_mixer.py`, core 0.16) on the kernel of
//! `mamba_ssm` that fuses convolution and scan: its input is saved, and everything in between is recomputed.

use super::parts::{
    CHUNK, FLOAT, convolution, gated_norm, input, last, output, rows, scan, unsharded, vector,
};
use crate::{Account, Saved, Symbols, Weight, Work, column};
use shardscope_explain::Formula;

const MODULE: &str = "megatron/core/ssm/mamba_mixer.py:MambaMixer._ssm_training";
const KERNEL: &str = "mamba_ssm/ops/triton/ssd_combined.py:MambaSplitConv1dScanCombinedFn";

static INPUT: Formula = Formula::new("S·h·Bi", "The projection's input: the norm output.", MODULE);
static GATHERED: Formula = Formula::new("n·h·Bi", "The projection's input, gathered.", MODULE);
static PROJECTED: Formula =
    Formula::new("n·(2·lv + 2·lk + hv)·B", "The projection's output: gate, values, B, C and step.", KERNEL);
static SCANNED: Formula = Formula::new("n·lv·B", "The scan's output before the gate.", KERNEL);
static GATED: Formula = Formula::new("n·lv·B", "The norm's input: the scan's output after the gate.", MODULE);
static DEVIATION: Formula =
    Formula::new("4·n·hk", "The norm's reciprocal standard deviation in each group, fp32.", MODULE);
static OUTPUT: Formula = Formula::new("n·lv·Bi", "The output projection's input.", MODULE);

pub(super) fn weights(x: &Symbols<'_>) -> Vec<Weight> {
    let Some(unsharded) = unsharded(x) else { return Vec::new() };
    let (keys, values, heads) = (unsharded.keys(), unsharded.values(), unsharded.value_heads);
    let projected = 2 * values + 2 * keys + heads;
    let [in_bias, conv_bias, out_bias] = unsharded.biases;
    let mut out = vec![Weight::column("in_proj.weight", Account::Attention, [projected, x.h], x.t)];
    out.extend(in_bias.then(|| vector("in_proj.bias", projected, x.t)));
    out.push(rows("conv1d.weight", [values + 2 * keys, unsharded.convolution], x.t));
    out.extend(conv_bias.then(|| vector("conv1d.bias", values + 2 * keys, x.t)));
    out.extend(["dt_bias", "A_log", "D"].map(|name| vector(name, heads, x.t)));
    if unsharded.norm {
        out.push(Weight::split_vector("norm.weight", Account::Norms, values, x.t));
    }
    out.extend(output(x, values, out_bias));
    out
}

pub(super) fn saved(x: &Symbols<'_>) -> Vec<Saved> {
    let (sizes, w) = (x.linear, x.width);
    let (keys, values) = (sizes.keys(), sizes.values());
    let projected = 2 * values + 2 * keys + sizes.value_heads;
    let mut out = vec![
        column::input(x, "in_proj input", x.input_width, &INPUT, &GATHERED).of_first_projection(),
        Saved::new("projected input", &[x.n, projected], w, &PROJECTED),
        Saved::new("scanned output", &[x.n, values], w, &SCANNED),
    ];
    if unsharded(x).is_some_and(|unsharded| unsharded.norm) {
        out.push(Saved::new("norm input", &[x.n, values], w, &GATED));
        out.push(Saved::new("norm inverse deviation", &[x.n, sizes.key_heads], FLOAT, &DEVIATION));
    }
    out.push(Saved::new("out_proj input", &[x.n, values], x.input_width, &OUTPUT));
    out.extend(crate::attention::residual_mask(x));
    out
}

pub(super) fn work(x: &Symbols<'_>) -> Vec<Work> {
    let Some(unsharded) = unsharded(x) else { return Vec::new() };
    let sizes = x.linear;
    let columns = |keys: u64, values: u64, heads: u64| 2 * values + 2 * keys + heads;
    let local = columns(sizes.keys(), sizes.values(), sizes.value_heads);
    let full = columns(unsharded.keys(), unsharded.values(), unsharded.value_heads);
    let mut work = vec![input(x, "in_proj", local, full), convolution(x, 2 * sizes.keys() + sizes.values())];
    // Within a chunk, C times B and the result times values; with the state, the update and the output. FLOPs are
    // counted as Megatron's 7 operations per channel and state (`megatron/training/training.py:mamba_layer_flops`).
    let (k, v) = (sizes.key_width, sizes.value_width);
    work.extend(scan(x, CHUNK * (k + v) + 2 * k * v, [7 * v, k / 2]));
    work.push(gated_norm(x, sizes.values()));
    work.extend(last(x));
    work
}
