//! The output layer of TRL 1.15 and later with the log-probabilities of given tokens: in tiles over tokens and
//! vocabulary, in forward and again in backward, each tile's logits overwritten by their gradient
//! (`trl/kernels/chunked_logprob.py`, recorded by tests/record/trl_fused_head.py).

use super::tape::Tape;
use crate::{Saved, Symbols, Transient};
use shardscope_explain::Formula;
use shardscope_plan::{DpSharding, Objective, Reference};
use shardscope_units::Bytes;

const KERNEL: &str = "trl/kernels/chunked_logprob.py:ChunkedLogProbFunction";
const HEAD: &str = "trl/trainer/utils.py:add_fused_lm_head";

/// Bytes of an fp32 number, of a torch index, and of a torch bool.
const FLOAT: u64 = 4;
const INDEX: u64 = 8;
const BYTE: u64 = 1;
/// Numbers per token that forward holds in addition to a tile: maximum logits, sums and the token's own, in fp32.
const RUNNING: u64 = 7;

static LABELLED: Formula =
    Formula::new("b·sampled·h·B", "The output layer's input for tokens that have a label.", HEAD);
static MASK: Formula = Formula::new("b·(s - 1)", "Which tokens have a label, one byte each.", HEAD);
static LABELS: Formula = Formula::new("8·b·sampled", "The labels that are not ignored, int64.", HEAD);
static SUMS: Formula =
    Formula::new("8·b·sampled", "Each token's log-sum-exp and entropy over the vocabulary, fp32.", KERNEL);
static COUNTS: Formula =
    Formula::new("16", "Number of tokens in the batch, and the same clamped to at least one, int64.", HEAD);
static COUNT: Formula = Formula::new("8", "Tokens that have a label, int64.", HEAD);
static MARGINS: Formula = Formula::new(
    "4·b",
    "Margin of each pair and its sigmoid's buffer, fp32.",
    "trl/trainer/dpo_trainer.py:DPOTrainer._compute_loss",
);
static SIGNS: Formula = Formula::new(
    "20·b + 16",
    "Indices of desirable and undesirable samples, their margins, weighted losses and counts.",
    "trl/trainer/kto_trainer.py:KTOTrainer._compute_loss",
);
static TILE: Formula =
    Formula::new("rows·words·Bc", "Logits of a tile, overwritten by their gradient.", KERNEL);
static RUNNING_SUMS: Formula =
    Formula::new("28·b·sampled", "Each token's running max and sum of exponentials, fp32.", KERNEL);
static HIDDEN: Formula =
    Formula::new("n·h·B", "The last norm's output, of which tokens with a label are taken.", HEAD);
static BESIDE: Formula =
    Formula::new("b·sampled·h·B", "The same of the reference, whose log-probabilities are taken too.", HEAD);
static CAST: Formula = Formula::new(
    "(rows + vw)·h·Bc",
    "Copies of a tile's input and weights in the dtype of the GEMM.",
    KERNEL,
);
static CAST_TWICE: Formula = Formula::new(
    "(rows + vww)·h·Bc",
    "Copies of a tile's input and weights in the dtype of the GEMM, and of the previous tile's weights.",
    KERNEL,
);
static INPUT: Formula =
    Formula::new("4·b·sampled·h", "Gradient of the output layer's input, accumulated in fp32.", KERNEL);
static WEIGHT: Formula =
    Formula::new("4·V·h", "Gradient of the output layer's weight, accumulated in fp32.", KERNEL);
static NARROW_INPUT: Formula =
    Formula::new("b·sampled·h·B", "Gradient of the output layer's input in its own dtype.", KERNEL);
static NARROW_WEIGHT: Formula =
    Formula::new("V·h·B", "Gradient of the output layer's weight in its own dtype.", KERNEL);

static APART: Formula = Formula::new(
    "V·h·B",
    "The output layer's weight, an FSDP unit of its own: all-gathered before it runs and freed after it.",
    "torch/distributed/fsdp/_runtime_utils.py:_pre_backward_hook",
);

/// What it saves. Every token but the last of a sequence is assumed to have a label; in a policy's rollouts those of
/// the response have.
pub(super) fn kept(tape: &mut Tape<'_, '_>) {
    let x = tape.x;
    let labelled = [x.b, x.sampled_tokens()];
    tape.keep(true, "lm_head input", &[labelled[0], labelled[1], x.h], x.width, &LABELLED);
    tape.keep(true, "tokens with a label", &[x.b, x.s.saturating_sub(1)], BYTE, &MASK);
    tape.keep(true, "labels", &labelled, INDEX, &LABELS);
    tape.keep(true, "log of the softmax's sum and entropy", &labelled, 2 * FLOAT, &SUMS);
    match x.recipe().tuning.objective {
        Objective::Dpo { .. } => tape.keep(true, "margins", &[x.b], FLOAT, &MARGINS),
        Objective::Kto { .. } => tape.keep(true, "margins", &[20 * x.b + 16], BYTE, &SIGNS),
        // What a policy loss computes from the log-probabilities is not counted, as elsewhere.
        Objective::Policy => {}
        _ => return tape.keep(true, "counts of tokens", &[2], INDEX, &COUNTS),
    }
    tape.keep(true, "count of tokens with a label", &[1], INDEX, &COUNT);
}

/// What is held in addition in both passes.
pub(super) fn transients(x: &Symbols<'_>, trains: bool) -> Vec<Transient> {
    let (rows, words, labelled) = (x.chunk_rows(), x.tile_words(), x.sampled_tokens());
    let wide = [x.b, labelled, x.h];
    let casts = x.width != x.compute_width;
    let copies = |cast: u64, formula| {
        let elements = rows + cast;
        casts.then(|| {
            Saved::new("copies of a tile's input and weights", &[elements, x.h], x.compute_width, formula)
        })
    };
    let tile = Saved::new("a tile of the logits", &[rows, words], x.compute_width, &TILE);
    let mut forward = vec![
        tile,
        Saved::new("last hidden states", &[x.n, x.h], x.width, &HIDDEN),
        Saved::new("running sums", &[x.b, labelled], RUNNING * FLOAT, &RUNNING_SUMS),
    ];
    let runs = x.recipe().tuning.objective.reference().is_some_and(|from| from != Reference::Precomputed);
    forward.extend(runs.then(|| Saved::new("the reference's last hidden states", &wide, x.width, &BESIDE)));
    forward.extend(copies(x.cast_words(1), &CAST));
    let mut backward = vec![tile, Saved::new("gradient of the input in fp32", &wide, FLOAT, &INPUT)];
    let head = [x.v, x.h];
    backward
        .extend(trains.then(|| Saved::new("output layer's weight gradient in fp32", &head, FLOAT, &WEIGHT)));
    backward.extend(copies(x.cast_words(2), &CAST_TWICE));
    // The sums become gradients when all tiles are done; the last tile is still held.
    if x.width < FLOAT {
        backward.push(Saved::new("gradient of the input", &wide, x.width, &NARROW_INPUT));
        backward.extend(
            trains.then(|| Saved::new("output layer's weight gradient", &head, x.width, &NARROW_WEIGHT)),
        );
    }
    backward.extend(gathered_head(x));
    vec![
        Transient::forward("loss", forward),
        Transient::new("backward of the output layer", Bytes::ZERO, backward),
    ]
}

/// The output layer's weight if it is a separate FSDP unit, which is gathered when its backward begins.
pub(super) fn gathered_head(x: &Symbols<'_>) -> Option<Saved> {
    let recipe = x.recipe();
    let sharded = recipe.dp_sharding == DpSharding::Parameters && x.plan.layout().dense_shards() > 1;
    let name = "gathered weight of the output layer";
    (recipe.transformers.ends_apart && sharded).then(|| Saved::new(name, &[x.v, x.h], x.width, &APART))
}
