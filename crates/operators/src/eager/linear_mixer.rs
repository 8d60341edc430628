//! Linear mixers as transformers' modules run them on the kernels of flash-linear-attention and mamba_ssm.

use super::flow::Flow;
use super::linear::{GATES_IN, IN_PROJ, Input, OUT_PROJ};
use super::tape::Tape;
use crate::linear::CHUNK;
use shardscope_explain::Formula;
use shardscope_plan::LinearKind;

const MODULE: &str = "transformers/models/qwen3_next/modeling_qwen3_next.py:Qwen3NextGatedDeltaNet";
const RULE: &str = "fla/ops/gated_delta_rule/chunk.py:ChunkGatedDeltaRuleFunction";
const NORM: &str = "transformers/models/qwen3_next/modeling_qwen3_next.py:Qwen3NextRMSNormGated";
const CASTS: &str = "aten/src/ATen/autocast_mode.cpp: inputs are cast for each product";
const SCAN: &str = "mamba_ssm/ops/triton/ssd_combined.py:MambaSplitConv1dScanCombinedFn";
const SHORT: &str = "transformers/models/lfm2/modeling_lfm2.py:Lfm2ShortConv.forward";
/// Bytes of an fp32 number.
const FLOAT: u64 = 4;
/// Name of the tensor that the projections read.
const NORMED: &str = "mixer input";

static CONVOLVED: Formula = Formula::new("n·(2·lk + lv)·Bc", "The convolution's input.", MODULE);
static UNIT: Formula = Formula::new("n·lk·Bc", "Queries or keys, L2-normalized.", RULE);
static LENGTHS: Formula =
    Formula::new("4·n·hk", "The reciprocal L2 norm of each query or key head, fp32.", RULE);
static VALUE: Formula = Formula::new("n·lv·Bc", "The values.", RULE);
static INVERSE: Formula =
    Formula::new("64·n·hv·Bc", "The inverse of a chunk's key products, 64 columns for each token.", RULE);
static STEP: Formula = Formula::new("n·hv·Bc", "The step after its sigmoid.", RULE);
static DECAY: Formula = Formula::new(
    "12·n·hv",
    "The decay before and after softplus, and its cumulative sum within each chunk, fp32.",
    RULE,
);
static FROZEN_DECAY: Formula = Formula::new(
    "8·n·hv",
    "The decay before softplus, and its cumulative sum within each chunk, fp32.",
    RULE,
);
static RATE: Formula = Formula::new("8·hv", "The exponential of A and its negative, fp32.", MODULE);
static FROZEN_RATE: Formula = Formula::new("4·hv", "The negative exponential of A, fp32.", SCAN);
static NORM_INPUT: Formula = Formula::new("4·n·lv", "The rule's output in fp32.", NORM);
static DEVIATION: Formula = Formula::new("4·n·hv", "The norm's reciprocal standard deviation, fp32.", NORM);
static NORM_OUTPUT: Formula =
    Formula::new("n·lv·Bc", "The normalised output, for the weight's gradient.", NORM);
static WEIGHTED: Formula = Formula::new("n·lv·B", "The norm's output, for the gate's gradient.", NORM);
static CAST_AGAIN: Formula =
    Formula::new("n·h·Bc", "The input in 16 bits, once more for the projection of step and decay.", CASTS);
static CAST_THRICE: Formula =
    Formula::new("3·n·h·Bc", "The input in 16 bits, once more for gate, step and decay each.", CASTS);
static GATE: Formula = Formula::new("8·n·lv", "The gate before and after its activation, fp32.", NORM);
static PROJECTED: Formula =
    Formula::new("n·(2·lv + 2·lk + hv)·Bc", "The projection's output: gate, values, B, C and step.", SCAN);
static SCANNED: Formula = Formula::new("n·lv·Bc", "The scan's output before the gate.", SCAN);
static CAST_WEIGHT: Formula = Formula::new("lv·h·Bc", "The output projection's weight in 16 bits.", SCAN);
static GROUPS: Formula = Formula::new(
    "4·n·hk",
    "The reciprocal standard deviation of each group; the norm is inside the kernel.",
    SCAN,
);

static GATES: Formula =
    Formula::new("n·(2·lk + lv)·Bc", "The projection's output: both gates and what they act on.", SHORT);
static GATED: Formula = Formula::new("n·lv·Bc", "The convolution's input, after the first gate.", SHORT);
static SHORT_OUTPUT: Formula =
    Formula::new("n·lv·Bc", "The convolution's output, for the second gate.", SHORT);

/// What `kind` saves; returns whether these modules support it.
pub(super) fn mixer(tape: &mut Tape<'_, '_>, kind: LinearKind) -> bool {
    match kind {
        LinearKind::GatedDeltaNet => gated_delta_net(tape),
        LinearKind::Mamba2 => mamba2(tape),
        LinearKind::ShortConvolution => short_convolution(tape),
        // As in the package's own layer.
        LinearKind::KimiDelta | LinearKind::Mamba => return false,
    }
    true
}

fn gated_delta_net(tape: &mut Tape<'_, '_>) {
    let (x, sizes) = (tape.x, tape.x.linear);
    let (keys, values, heads) = (sizes.keys(), sizes.values(), sizes.value_heads);
    let (w, flow) = (x.compute_width, Flow::new(x));
    let input = Input { shared: Some(NORMED), needed: flow.norm1, cast: false };
    let any = IN_PROJ.run(tape, input, [x.h, 2 * keys + 2 * values + 2 * heads]);
    let trains = x.trains;
    let split = x.model().arrangement.split_mixer_inputs;
    let (again, formula) = if split { (3, &CAST_THRICE) } else { (1, &CAST_AGAIN) };
    let cast = trains && x.casts_weights();
    tape.keep(cast, "input of the other projections", &[again, x.n, x.h], w, formula);
    tape.keep(any, "convolution input", &[x.n, 2 * keys + values], w, &CONVOLVED);
    tape.keep(any, "query", &[x.n, keys], w, &UNIT);
    tape.keep(any, "key", &[x.n, keys], w, &UNIT);
    tape.keep(any, "query lengths", &[x.n, sizes.key_heads], FLOAT, &LENGTHS);
    tape.keep(any, "key lengths", &[x.n, sizes.key_heads], FLOAT, &LENGTHS);
    tape.keep(any, "value", &[x.n, values], w, &VALUE);
    tape.keep(any, "inverse of the chunks", &[x.n, heads, CHUNK], w, &INVERSE);
    tape.keep(any, "step", &[x.n, heads], w, &STEP);
    // The softplus output is saved only for the rate's gradient.
    let (times, decay, rate) = if trains { (3, &DECAY, &RATE) } else { (2, &FROZEN_DECAY, &FROZEN_RATE) };
    tape.keep(any, "decay", &[times, x.n, heads], FLOAT, decay);
    tape.keep(any, "rate", &[times - 1, heads], FLOAT, rate);
    tape.keep(any, "norm input in fp32", &[x.n, values], FLOAT, &NORM_INPUT);
    tape.keep(any, "norm statistics", &[x.n, heads], FLOAT, &DEVIATION);
    tape.keep(trains, "normalised output", &[x.n, values], w, &NORM_OUTPUT);
    tape.keep(any, "weighted output", &[x.n, values], x.width, &WEIGHTED);
    tape.keep_several(any, "gate in fp32", &[2, x.n, values], FLOAT, &GATE);
    OUT_PROJ.run(tape, Input { shared: None, needed: any, cast: true }, [values, x.h]);
}

/// Norm and output projection are inside the kernel, which recomputes them.
fn mamba2(tape: &mut Tape<'_, '_>) {
    let (x, sizes) = (tape.x, tape.x.linear);
    let (keys, values) = (sizes.keys(), sizes.values());
    let projected = 2 * values + 2 * keys + sizes.value_heads;
    let input = Input { shared: Some(NORMED), needed: Flow::new(x).norm1, cast: false };
    let any = IN_PROJ.run(tape, input, [x.h, projected]);
    // Multiplied by constants in the weights' dtype, it has that dtype.
    let w = if x.model().arrangement.scaled_mixer_inputs { x.width } else { x.compute_width };
    tape.keep(any, "projected input", &[x.n, projected], w, &PROJECTED);
    // The kernel saves the rate whether it trains or not; its exponential is saved for its gradient.
    let (times, formula) = if x.trains { (2, &RATE) } else { (1, &FROZEN_RATE) };
    tape.keep(any, "rate", &[times, sizes.value_heads], FLOAT, formula);
    tape.keep(any, "scanned output", &[x.n, values], w, &SCANNED);
    let norm = x.model().mixers.linear.is_some_and(|linear| linear.norm);
    tape.keep(any && norm, "norm statistics", &[x.n, sizes.key_heads], FLOAT, &GROUPS);
    let cast = any && x.casts_weights();
    tape.keep(cast, "out_proj weight in 16 bits", &[values, x.h], x.compute_width, &CAST_WEIGHT);
}

fn short_convolution(tape: &mut Tape<'_, '_>) {
    let (x, w) = (tape.x, tape.x.compute_width);
    let (keys, values) = (x.linear.keys(), x.linear.values());
    let input = Input { shared: Some(NORMED), needed: Flow::new(x).norm1, cast: false };
    let any = GATES_IN.run(tape, input, [x.h, 2 * keys + values]);
    tape.keep(any, "projected input", &[x.n, 2 * keys + values], w, &GATES);
    tape.keep(any || x.trains, "convolution input", &[x.n, values], w, &GATED);
    tape.keep(any, "convolution output", &[x.n, values], w, &SHORT_OUTPUT);
    OUT_PROJ.run(tape, Input { shared: None, needed: any || x.trains, cast: true }, [values, x.h]);
}
