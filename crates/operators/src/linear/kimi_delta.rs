//! Kimi delta attention on the kernels of flash-linear-attention (`fla/layers/kda.py`): projections and a convolution
//! each for queries, keys and values; a decay for every channel of a key through a low rank; a gated norm, whose gate
//! is low-rank too.

use super::parts::{
    CHUNK, FLOAT, convolution, gated_norm, input, last, output, rows, scan, unsharded, vector,
};
use crate::{Account, Saved, Symbols, Weight, Work, column};
use shardscope_explain::Formula;

const MODULE: &str = "fla/layers/kda.py:KimiDeltaAttention.forward";
const RULE: &str = "fla/ops/kda/chunk.py:ChunkKDAFunction";
const NORM: &str = "fla/modules/norm/fused_norm_gate.py:LayerNormGatedFunction";

static INPUT: Formula = Formula::new("S·h·Bi", "The projections' input: the norm output.", MODULE);
static GATHERED: Formula = Formula::new("n·h·Bi", "The projections' input, gathered.", MODULE);
static PROJECTED: Formula =
    Formula::new("n·(2·lk + lv)·B", "The convolutions' inputs: queries, keys and values.", MODULE);
static QUERY: Formula = Formula::new("n·lk·B", "The queries, L2-normalized.", RULE);
static KEY: Formula = Formula::new("n·lk·B", "The keys, L2-normalized.", RULE);
static LENGTHS: Formula =
    Formula::new("4·n·hk", "The reciprocal L2 norm of each query or key head, fp32.", RULE);
static VALUE: Formula = Formula::new("n·lv·B", "The values.", RULE);
static LOW: Formula =
    Formula::new("n·lr·B", "What passes between the two GEMMs of a low-rank projection.", MODULE);
static DECAY: Formula = Formula::new("n·hv·dk·B", "The decay of every channel, before its softplus.", RULE);
static STEP: Formula = Formula::new("n·hv·B", "The step before its sigmoid.", RULE);
static STEP_BEHIND: Formula = Formula::new("n·hv·B", "The step after its sigmoid.", RULE);
static WITHIN: Formula =
    Formula::new("64·n·hv·B", "A chunk's own products, 64 columns for each token.", RULE);
static SCANNED: Formula = Formula::new("n·lv·B", "The rule's output, which the norm reads.", NORM);
static GATE: Formula = Formula::new("n·lv·B", "The gate.", NORM);
static DEVIATION: Formula = Formula::new("4·n·hv", "The norm's reciprocal standard deviation, fp32.", NORM);
static OUTPUT: Formula = Formula::new("n·lv·Bi", "The output projection's input.", MODULE);

pub(super) fn weights(x: &Symbols<'_>) -> Vec<Weight> {
    let Some(unsharded) = unsharded(x) else { return Vec::new() };
    let (keys, values, heads, rank) =
        (unsharded.keys(), unsharded.values(), unsharded.value_heads, unsharded.rank);
    let decay = heads * unsharded.key_width;
    let linear = |name, size| Weight::column(name, Account::Attention, size, x.t);
    let low = |name| Weight::replicated(name, Account::Attention, &[rank, x.h]).as_linear();
    let mut out = vec![
        linear("q_proj.weight", [keys, x.h]),
        linear("k_proj.weight", [keys, x.h]),
        linear("v_proj.weight", [values, x.h]),
        rows("conv1d.weight", [2 * keys + values, unsharded.convolution], x.t),
        low("f_proj.0.weight"),
        linear("f_proj.1.weight", [decay, rank]),
        linear("b_proj.weight", [heads, x.h]),
        vector("A_log", heads, x.t),
        vector("dt_bias", decay, x.t),
        low("g_proj.0.weight"),
        linear("g_proj.1.weight", [values, rank]),
        Weight::replicated("o_norm.weight", Account::Norms, &[unsharded.value_width]),
    ];
    out.extend(output(x, values, false));
    out
}

pub(super) fn saved(x: &Symbols<'_>) -> Vec<Saved> {
    let (sizes, w) = (x.linear, x.width);
    let (keys, values, heads) = (sizes.keys(), sizes.values(), sizes.value_heads);
    let within = [x.n, heads, CHUNK];
    let mut out = vec![
        column::input(x, "in_proj input", x.input_width, &INPUT, &GATHERED).of_first_projection(),
        Saved::new("convolutions' inputs", &[x.n, 2 * keys + values], w, &PROJECTED),
        Saved::new("query", &[x.n, keys], w, &QUERY),
        Saved::new("key", &[x.n, keys], w, &KEY),
        Saved::new("query lengths", &[x.n, sizes.key_heads], FLOAT, &LENGTHS),
        Saved::new("key lengths", &[x.n, sizes.key_heads], FLOAT, &LENGTHS),
        Saved::new("value", &[x.n, values], w, &VALUE),
        Saved::new("decay's low rank", &[x.n, sizes.rank], w, &LOW),
        Saved::new("decay", &[x.n, heads, sizes.key_width], w, &DECAY),
        Saved::new("step input", &[x.n, heads], w, &STEP),
        Saved::new("step", &[x.n, heads], w, &STEP_BEHIND),
        Saved::new("queries with keys of the chunks", &within, w, &WITHIN),
        Saved::new("inverse of the chunks", &within, w, &WITHIN),
        Saved::new("o_norm input", &[x.n, values], w, &SCANNED),
        Saved::new("gate's low rank", &[x.n, sizes.rank], w, &LOW),
        Saved::new("gate", &[x.n, values], w, &GATE),
        Saved::new("o_norm inverse deviation", &[x.n, heads], FLOAT, &DEVIATION),
        Saved::new("out_proj input", &[x.n, values], x.input_width, &OUTPUT),
    ];
    out.extend(crate::attention::residual_mask(x));
    out
}

pub(super) fn work(x: &Symbols<'_>) -> Vec<Work> {
    let Some(unsharded) = unsharded(x) else { return Vec::new() };
    let (sizes, tokens) = (x.linear, x.full_tokens());
    let columns = |keys: u64, values: u64, heads: u64| 2 * keys + values + heads;
    let local = columns(sizes.keys(), sizes.values(), sizes.value_heads);
    let full = columns(unsharded.keys(), unsharded.values(), unsharded.value_heads);
    let (k, v) = (sizes.key_width, sizes.value_width);
    let decay = [sizes.value_heads * k, unsharded.value_heads * k];
    let mut work = vec![
        input(x, "qkv_proj", local, full),
        input(x, "low_rank_down", 2 * sizes.rank, 2 * sizes.rank),
        Work::linear("f_proj", [x.n, decay[0], sizes.rank], [tokens, decay[1], sizes.rank]),
        Work::linear("g_proj", [x.n, sizes.values(), sizes.rank], [tokens, unsharded.values(), sizes.rank]),
        convolution(x, 2 * sizes.keys() + sizes.values()),
    ];
    // As the gated delta rule; what the kernel recomputes in backward is not counted.
    work.extend(scan(x, CHUNK * (3 * k + 2 * v) + 3 * k * v, [v, 4 * k]));
    work.push(gated_norm(x, sizes.values()));
    work.extend(last(x));
    work
}
