//! verl's output layer with the log-probabilities and entropies of given tokens, 512 tokens at a time
//! (`verl/utils/experimental/torch_functional.py:FusedLinearForPPOFunction` of `use_fused_kernels`, backend torch): no
//! logits are saved, and backward makes them again. Its function holds a chunk's gradients until the next one's are
//! there. Recorded by tests/record/verl_fused.py.

use super::tape::Tape;
use crate::{Saved, Symbols, Transient};
use shardscope_explain::Formula;
use shardscope_units::Bytes;

const FUSED: &str = "verl/utils/experimental/torch_functional.py:FusedLinearForPPOFunction";

/// Bytes of a torch index.
const INDEX: u64 = 8;
/// Bytes of the fp32 tensors of a chunk's logits at the peak of forward: themselves, their softmax, its logarithm, and
/// what a sum is taken of.
const FORWARD: u64 = 16;
/// The same in backward: themselves, their softmax, a one-hot matrix, its difference from them, and their gradient; with
/// the entropy also the logarithm and two products.
const BACKWARD: [u64; 2] = [20, 28];
/// What of it is still there when the gradients of input and weight are made, beside the gradient in 16 bits.
const BEHIND: [u64; 2] = [12, 16];

static HIDDEN: Formula = Formula::new("n·h·B", "Input of the output layer.", FUSED);
static LABELS: Formula = Formula::new("8·n", "The tokens whose log-probabilities are taken, int64.", FUSED);
static FORTH: Formula = Formula::new(
    "16·rows·V",
    "A chunk's logits in fp32, their softmax, its logarithm and their product.",
    FUSED,
);
static BACK: Formula = Formula::new(
    "20·rows·V",
    "A chunk's logits in fp32, their softmax, the sampled tokens as a one-hot matrix, their difference and its product.",
    FUSED,
);
static BACK_OF_ENTROPY: Formula = Formula::new(
    "28·rows·V",
    "A chunk's logits in fp32, their softmax and its logarithm, the sampled tokens as a one-hot matrix, the gradient so far and two products for the entropy's.",
    FUSED,
);
static LEFT: Formula = Formula::new(
    "rows·V·(12 + Bc)",
    "A chunk's logits in fp32, their softmax, the one-hot matrix, and the gradient in 16 bits.",
    FUSED,
);
static LEFT_OF_ENTROPY: Formula = Formula::new(
    "rows·V·(16 + Bc)",
    "A chunk's logits in fp32, their softmax and its logarithm, the one-hot matrix, and the gradient in 16 bits.",
    FUSED,
);
static INPUT: Formula = Formula::new("n·h·B", "Gradient of the output layer's input.", FUSED);
static WEIGHT: Formula = Formula::new("V·h·B", "Gradient of the output layer's weight.", FUSED);
static OF_CHUNK: Formula = Formula::new(
    "rows·h·B + V·h·B",
    "A chunk's gradients of input and weight, the latter also where the weight is frozen.",
    FUSED,
);

/// What it saves.
pub(super) fn kept(tape: &mut Tape<'_, '_>) {
    let x = tape.x;
    tape.keep(true, "output layer's input", &[x.n, x.h], x.width, &HIDDEN);
    tape.keep(true, "tokens of the loss", &[x.n], INDEX, &LABELS);
}

/// What is held in addition in both passes.
pub(super) fn transients(x: &Symbols<'_>, trains: bool) -> Vec<Transient> {
    let entropy = usize::from(x.entropy_in_loss());
    let rows = x.chunk_rows();
    let logits = |rows: u64, bytes, formula| Saved::new("logits of a chunk", &[rows, x.v], bytes, formula);
    let of_chunk = |name, rows: u64| Saved::new(name, &[rows + x.v, x.h], x.width, &OF_CHUNK);
    let mut out = vec![Transient::forward("loss", vec![logits(rows, FORWARD, &FORTH)])];
    // The first chunk, and the next beside what the first has left, which is counted as a whole one.
    for before in std::iter::once(None).chain((x.n > rows).then_some(Some(rows))) {
        let mut held = vec![Saved::new("gradient of the input", &[x.n, x.h], x.width, &INPUT)];
        held.extend(
            trains.then(|| Saved::new("output layer's weight gradient", &[x.v, x.h], x.width, &WEIGHT)),
        );
        held.extend(before.map(|before| of_chunk("gradients of the chunk before", before)));
        let widest = logits(rows, BACKWARD[entropy], [&BACK, &BACK_OF_ENTROPY][entropy]);
        let left = logits(rows, BEHIND[entropy] + x.compute_width, [&LEFT, &LEFT_OF_ENTROPY][entropy]);
        let made = of_chunk("gradients of a chunk", rows);
        let with = |more: Vec<Saved>| held.iter().cloned().chain(more).collect();
        out.push(Transient::new("backward of the loss", Bytes::ZERO, with(vec![widest])));
        out.push(Transient::new("backward of the output layer", Bytes::ZERO, with(vec![left, made])));
    }
    out
}
