//! Gated DeltaNet (Yang et al. 2024) as Megatron builds it (`megatron/core/ssm/gated_delta_net.py`, core 0.16) on the
//! kernels of flash-linear-attention: one projection for queries, keys, values, gate, step and decay; a convolution;
//! unit norms of queries and keys, repeated for every value head; the chunked gated delta rule; a gated norm.

use super::parts::{
    CHUNK, FLOAT, convolution, delta_rule, gated_norm, input, last, output, rows, unsharded, vector,
};
use crate::{Account, Saved, Symbols, Weight, Work, column};
use shardscope_explain::Formula;

const MODULE: &str = "megatron/core/ssm/gated_delta_net.py:GatedDeltaNet.forward";
const NORM: &str = "fla/modules/norm/l2norm.py:L2NormFunction";
const RULE: &str = "fla/ops/gated_delta_rule/chunk.py:ChunkGatedDeltaRuleFunction";

static INPUT: Formula = Formula::new("S·h·Bi", "The projection's input: the norm output.", MODULE);
static GATHERED: Formula = Formula::new("n·h·Bi", "The projection's input, gathered.", MODULE);
static CONVOLVED: Formula = Formula::new("n·(2·lk + lv)·B", "The convolution's input.", MODULE);
static QUERY: Formula = Formula::new("n·lk·B", "The queries, L2-normalized.", NORM);
static KEY: Formula = Formula::new("n·lk·B", "The keys, L2-normalized.", NORM);
static LENGTHS: Formula =
    Formula::new("4·n·hk", "The reciprocal L2 norm of each query or key head, fp32.", NORM);
static REPEATED: Formula =
    Formula::new("n·hv·dk·B", "Queries or keys repeated for every value head.", MODULE);
static VALUE: Formula = Formula::new("n·lv·B", "The values.", RULE);
static DECAY: Formula =
    Formula::new("4·n·hv", "The cumulative sum of the decay within each chunk, fp32.", RULE);
static STEP: Formula = Formula::new("n·hv·B", "The step after its sigmoid.", RULE);
static WITHIN: Formula =
    Formula::new("64·n·hv·B", "The inverse of a chunk's key products, 64 columns for each token.", RULE);
static SOFTPLUS_INPUT: Formula =
    Formula::new("4·n·hv", "The decay's projection in fp32, before softplus.", MODULE);
static SOFTPLUS: Formula = Formula::new("4·n·hv", "The decay's softplus, fp32.", MODULE);
static SCANNED: Formula = Formula::new("n·lv·B", "The rule's output, which the norm reads.", MODULE);
static DEVIATION: Formula = Formula::new("4·n·hv", "The norm's reciprocal standard deviation, fp32.", MODULE);
static NORMED: Formula = Formula::new("n·lv·B", "The norm's output, for the gate's gradient.", MODULE);
static GATE: Formula = Formula::new("n·lv·B", "The gate.", MODULE);
static OUTPUT: Formula = Formula::new("n·lv·Bi", "The output projection's input.", MODULE);

pub(super) fn weights(x: &Symbols<'_>) -> Vec<Weight> {
    let Some(unsharded) = unsharded(x) else { return Vec::new() };
    let (keys, values, heads) = (unsharded.keys(), unsharded.values(), unsharded.value_heads);
    let projected = 2 * keys + 2 * values + 2 * heads;
    let mut out = vec![
        Weight::column("in_proj.weight", Account::Attention, [projected, x.h], x.t),
        rows("conv1d.weight", [2 * keys + values, unsharded.convolution], x.t),
        vector("dt_bias", heads, x.t),
        vector("A_log", heads, x.t),
        Weight::replicated("out_norm.weight", Account::Norms, &[unsharded.value_width]),
    ];
    out.extend(output(x, values, false));
    out
}

pub(super) fn saved(x: &Symbols<'_>) -> Vec<Saved> {
    let (sizes, w) = (x.linear, x.width);
    let (keys, values, heads) = (sizes.keys(), sizes.values(), sizes.value_heads);
    let mut out = vec![
        column::input(x, "in_proj input", x.input_width, &INPUT, &GATHERED).of_first_projection(),
        Saved::new("conv1d input", &[x.n, 2 * keys + values], w, &CONVOLVED),
        Saved::new("query", &[x.n, keys], w, &QUERY),
        Saved::new("key", &[x.n, keys], w, &KEY),
        Saved::new("query lengths", &[x.n, sizes.key_heads], FLOAT, &LENGTHS),
        Saved::new("key lengths", &[x.n, sizes.key_heads], FLOAT, &LENGTHS),
    ];
    if heads > sizes.key_heads {
        let shape = [x.n, heads, sizes.key_width];
        out.push(Saved::new("repeated query", &shape, w, &REPEATED));
        out.push(Saved::new("repeated key", &shape, w, &REPEATED));
    }
    out.extend([
        Saved::new("value", &[x.n, values], w, &VALUE),
        Saved::new("summed decay", &[x.n, heads], FLOAT, &DECAY),
        Saved::new("step", &[x.n, heads], w, &STEP),
        Saved::new("inverse of the chunks", &[x.n, heads, CHUNK], w, &WITHIN),
        Saved::new("softplus input", &[x.n, heads], FLOAT, &SOFTPLUS_INPUT),
        Saved::new("softplus", &[x.n, heads], FLOAT, &SOFTPLUS),
        Saved::new("out_norm input", &[x.n, values], w, &SCANNED),
        Saved::new("out_norm inverse deviation", &[x.n, heads], FLOAT, &DEVIATION),
        Saved::new("out_norm output", &[x.n, values], w, &NORMED),
        Saved::new("gate", &[x.n, values], w, &GATE),
        Saved::new("out_proj input", &[x.n, values], x.input_width, &OUTPUT),
    ]);
    out.extend(crate::attention::residual_mask(x));
    out
}

pub(super) fn work(x: &Symbols<'_>) -> Vec<Work> {
    let Some(unsharded) = unsharded(x) else { return Vec::new() };
    if x.in_pieces() && x.recipe().transformers.reference_mixers {
        return super::reference_rule::work(x, unsharded);
    }
    let sizes = x.linear;
    let columns = |keys: u64, values: u64, heads: u64| 2 * keys + 2 * values + 2 * heads;
    let local = columns(sizes.keys(), sizes.values(), sizes.value_heads);
    let full = columns(unsharded.keys(), unsharded.values(), unsharded.value_heads);
    let mut work = vec![input(x, "in_proj", local, full), convolution(x, 2 * sizes.keys() + sizes.values())];
    work.extend(delta_rule(x));
    work.push(gated_norm(x, sizes.values()));
    work.extend(last(x));
    work
}
