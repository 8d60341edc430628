//! Code shared by most points of eager modules.

use super::super::saved::by_step;
use super::super::tape::Step;
use crate::{Operator, Saved, Symbols};
use shardscope_explain::Formula;
use shardscope_units::Bytes;

pub(super) const AUTOGRAD: &str = "torch autograd: a node's gradients are alive while it runs";

/// Bytes of an fp32 number.
pub(super) const FLOAT: u64 = 4;

pub(super) const LOSS: &str =
    "torch.nn.functional.cross_entropy: nll_loss backward, then log_softmax backward";

pub(super) static INPUT: Formula = Formula::new("n·h·B", "Gradient of the output layer's input.", AUTOGRAD);

pub(super) static NARROW: Formula = Formula::new("n·V·Bc", "Gradient of the logits in 16 bits.", LOSS);

pub(super) static WORDS: Formula =
    Formula::new("V·h·B", "The word embedding's gradient, every row of it.", AUTOGRAD);

static RESIDUAL: Formula = Formula::new("S·h·Br", "The residual stream's gradient.", AUTOGRAD);

pub(super) fn residual(x: &Symbols<'_>) -> Saved {
    Saved::new("residual gradient", &[x.s_local, x.h], x.residual_width, &RESIDUAL)
}

/// Bytes that `operator` saves for `steps`, whose backward has run by then.
pub(super) fn returned(operator: Operator, x: &Symbols<'_>, steps: &[Step]) -> Bytes {
    let kept = by_step(operator, x).unwrap_or_default();
    kept.iter().filter(|(step, _)| steps.contains(step)).map(|(_, saved)| saved.bytes).sum()
}
