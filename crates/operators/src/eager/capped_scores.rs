//! Attention with capped scores as unsloth compiles it
//! (`unsloth/kernels/flex_attention.py:slow_attention_softcapping`): one region whose saved tensors torch.compile's
//! partitioner chose. Recorded runs are matched to the byte (`tests/data/activations/unsloth.jsonl`), and the
//! additional tensors in backward are what PyTorch 2.11's Inductor held on an H200, the same in bf16 and fp16.

use super::flow::Flow;
use super::tape::Tape;
use crate::{Saved, Symbols};
use shardscope_explain::Formula;
use shardscope_plan::AttentionKernel;

const REGION: &str = "unsloth/kernels/flex_attention.py:slow_attention_softcapping";
/// Bytes of an fp32 number.
const FLOAT: u64 = 4;

static QUERIES: Formula = Formula::new("n·A·Bc", "Queries, scaled.", REGION);
static REPEATED: Formula = Formula::new("n·A·Bc", "Keys or values, repeated for every query head.", REGION);
static SCORES: Formula = Formula::new(
    "a·s·s·b·Bc",
    "Scores before they are capped, from which the softmax is computed again.",
    REGION,
);
static PROBABILITIES: Formula =
    Formula::new("a·s·s·b·Bc", "The probabilities, for the gradient of the values.", REGION);
static EXTREMES: Formula =
    Formula::new("8·n·a", "Each row's largest capped score and its sum, fp32.", REGION);
static CAP: Formula = Formula::new("4", "The cap as a number of the graph.", REGION);
static OF_SCORES: Formula =
    Formula::new("2·a·s·s·b·Bc", "Gradients of the probabilities and of the scores.", REGION);
static OF_VALUES: Formula = Formula::new("n·K·Bc", "Gradient of the values.", REGION);

/// Whether a layer's attention is such a region.
pub(super) fn is_region(x: &Symbols<'_>) -> bool {
    x.recipe().software.semantics().modules.compiles_capped_scores
        && !x.recipe().fusions.compiled_layers
        && x.model().arrangement.attention_softcap
        && x.recipe().attention_kernel == AttentionKernel::Unfused
}

/// What it saves if any of its inputs requires a gradient.
pub(super) fn kept(tape: &mut Tape<'_, '_>, flow: &Flow) {
    let (x, any) = (tape.x, flow.attention);
    let (wide, scores) = ([x.n, x.a, x.d], [x.b, x.a, x.s, x.s]);
    tape.keep(any, "query", &wide, x.compute_width, &QUERIES);
    tape.keep(any, "repeated key", &wide, x.compute_width, &REPEATED);
    tape.keep(any, "repeated value", &wide, x.compute_width, &REPEATED);
    tape.keep(any, "scores", &scores, x.compute_width, &SCORES);
    tape.keep(any, "16-bit probabilities", &scores, x.compute_width, &PROBABILITIES);
    tape.keep(any, "largest scores and sums", &[x.n, x.a], 2 * FLOAT, &EXTREMES);
    tape.keep(any, "cap", &[1], FLOAT, &CAP);
}

/// What its backward holds when the scores' gradient is computed: by then the repeated values are freed.
pub(super) fn backward(x: &Symbols<'_>) -> [Saved; 2] {
    [
        Saved::several(
            "gradients of probabilities and scores",
            &[2, x.b, x.a, x.s, x.s],
            x.compute_width,
            &OF_SCORES,
        ),
        Saved::new("gradient of the values", &[x.n, x.k, x.d], x.compute_width, &OF_VALUES),
    ]
}

/// Bytes of the repeated values.
pub(super) fn returned(x: &Symbols<'_>) -> u64 {
    x.n * x.a * x.d * x.compute_width
}
