//! verl's output layer with the log-probabilities and entropies of given tokens by Triton kernels of its own (`use_fused_kernels`:
//! the backend triton under FSDP, and always under Megatron): no logits exist in forward, and backward makes their gradients for
//! 9,504 words at a time. Recorded by tests/record/verl_kernel.py.

use crate::{Saved, Symbols, Transient};
use shardscope_explain::Formula;
use shardscope_units::Bytes;

const FORTH_IN: &str = "verl/utils/kernel/kernels.py:efficient_entropy_forward";
const BACK_IN: &str = "verl/utils/kernel/kernels.py:efficient_entropy_backward";
const FLOAT: u64 = 4;
/// Bytes of a torch index.
const INDEX: u64 = 8;

static HIDDEN: Formula =
    Formula::new("n·h·B", "Input of the output layer, of all tensor ranks' tokens.", FORTH_IN);
static LABELS: Formula =
    Formula::new("8·n", "The tokens whose log-probabilities are taken, int64.", FORTH_IN);
static STATISTICS: Formula = Formula::new(
    "12·n",
    "Each token's greatest logit, sum of exponentials and entropy's sum, fp32.",
    FORTH_IN,
);
static BY_STRETCH: Formula = Formula::new(
    "4·nums·n·parts",
    "The same of each stretch of 1,024 words, fp32; over tensor ranks also a copy of the greatest logits for the others.",
    FORTH_IN,
);
static RESULTS: Formula =
    Formula::new("8·n", "Log-probabilities and entropies, fp32, or their gradients.", FORTH_IN);
static INPUT: Formula = Formula::new("n·h·B", "Gradient of the output layer's input.", BACK_IN);
static WEIGHT: Formula =
    Formula::new("V·h·B", "Gradient of the output layer's weight, also where it is frozen.", BACK_IN);
static LOGITS: Formula = Formula::new("n·words·B", "Gradients of 9,504 words' logits at a time.", BACK_IN);
static NEXT: Formula =
    Formula::new("n·h·B", "What a further stretch of words adds to the input's gradient.", BACK_IN);
static REST: Formula =
    Formula::new("n·rest·B", "A copy of the last stretch's gradients, of the words that are left.", BACK_IN);

/// What it saves.
pub(crate) fn kept(x: &Symbols<'_>) -> [Saved; 3] {
    [
        Saved::new("output layer's input", &[x.n, x.h], x.width, &HIDDEN),
        Saved::new("tokens of the loss", &[x.n], INDEX, &LABELS),
        Saved::new("softmax statistics", &[3, x.n], FLOAT, &STATISTICS),
    ]
}

/// What forward holds besides.
pub(crate) fn forward(x: &Symbols<'_>) -> [Saved; 2] {
    let by_stretch = [x.kernel_partial(), x.n, x.kernel_parts()];
    [
        Saved::new("log-probabilities and entropies", &[2, x.n], FLOAT, &RESULTS),
        Saved::new("statistics by stretch", &by_stretch, FLOAT, &BY_STRETCH),
    ]
}

/// What backward holds besides: with one stretch's gradients either what it adds or, of the last, their copy.
pub(crate) fn backward(x: &Symbols<'_>) -> Vec<Transient> {
    let held = [
        Saved::new("gradients of log-probabilities", &[2, x.n], FLOAT, &RESULTS),
        Saved::new("gradient of the input", &[x.n, x.h], x.width, &INPUT),
        Saved::new("output layer's weight gradient", &[x.v, x.h], x.width, &WEIGHT),
        Saved::new("gradients of the logits", &[x.n, x.tile_words()], x.width, &LOGITS),
    ];
    let moment = |more: Option<Saved>| {
        Transient::new("backward of the loss", Bytes::ZERO, held.iter().cloned().chain(more).collect())
    };
    let several = x.v > x.tile_words();
    let next = several.then(|| Saved::new("input's gradient of a stretch", &[x.n, x.h], x.width, &NEXT));
    let rest = (x.kernel_rest() > 0)
        .then(|| Saved::new("copy of the last gradients", &[x.n, x.kernel_rest()], x.width, &REST));
    vec![moment(next), moment(rest)]
}

/// What either pass of transformers' modules holds besides.
pub(crate) fn transients(x: &Symbols<'_>) -> Vec<Transient> {
    let mut out = backward(x);
    out.insert(0, Transient::forward("loss", forward(x).into()));
    out
}
