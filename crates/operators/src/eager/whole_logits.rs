//! A loss that every tensor rank takes of the logits of all, which DTensor gathers in fp32 (`tests/record/dtensor_automodel.py`).

use super::tape::Tape;
use crate::{Saved, Symbols};
use shardscope_explain::Formula;

const LOSS: &str =
    "nemo_automodel/components/loss/masked_ce.py:MaskedCrossEntropy.forward, logits.full_tensor()";
const FLOAT: u64 = 4;
const INDEX: u64 = 8;

static SOFTMAX: Formula =
    Formula::new("4·n·t·V", "Log-softmax over the vocabulary of all tensor ranks, fp32.", LOSS);
static LABELS: Formula = Formula::new("8·n", "The labels, int64.", LOSS);
static TOTAL: Formula = Formula::new("4", "The loss's total weight, one fp32 number.", LOSS);
static LOGITS: Formula = Formula::new("n·V·Bc", "This rank's logits as the output layer made them.", LOSS);
static COPY: Formula = Formula::new("4·n·V", "The same in fp32, of which the others gather theirs.", LOSS);
static WHOLE: Formula = Formula::new(
    "4·n·t·V",
    "All ranks' logits in fp32: as they came, beside their join, and as the loss reads them.",
    LOSS,
);
static BOTH: Formula =
    Formula::new("8·n·t·V", "Gradients of the log-softmax and of all ranks' logits, fp32.", LOSS);

/// What the loss keeps.
pub(super) fn kept(tape: &mut Tape<'_, '_>) {
    let x = tape.x;
    tape.keep(true, "log-softmax", &[x.n, x.t * x.v], FLOAT, &SOFTMAX);
    tape.keep(true, "labels", &[x.n], INDEX, &LABELS);
    tape.keep(true, "total weight", &[1], FLOAT, &TOTAL);
}

/// What is alive beside that while the loss runs. The ranks' parts are gathered one behind the other and joined by words
/// (`torch.distributed._functional_collectives.all_gather_tensor`): the join takes the log-softmax's place at that moment.
pub(super) fn forward(x: &Symbols<'_>) -> Vec<Saved> {
    vec![
        Saved::new("logits", &[x.n, x.v], x.compute_width, &LOGITS),
        Saved::new("fp32 logits", &[x.n, x.v], FLOAT, &COPY),
        Saved::new("fp32 logits of all tensor ranks", &[x.n, x.t * x.v], FLOAT, &WHOLE),
    ]
}

/// Its gradients.
pub(super) fn backward(x: &Symbols<'_>) -> Vec<Saved> {
    vec![Saved::several("gradients of the fp32 logits", &[2, x.n, x.t * x.v], FLOAT, &BOTH)]
}
