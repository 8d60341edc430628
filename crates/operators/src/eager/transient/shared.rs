//! What most points of eager modules share.

use super::super::saved::saved;
use crate::{Operator, Saved, Symbols};
use shardscope_explain::Formula;
use shardscope_units::Bytes;

pub(super) const AUTOGRAD: &str = "torch autograd: a node's gradients are alive while it runs";

/// Bytes of an fp32 number.
pub(super) const FLOAT: u64 = 4;

static RESIDUAL: Formula = Formula::new("n·h·Br", "The residual stream's gradient.", AUTOGRAD);

pub(super) fn residual(x: &Symbols<'_>) -> Saved {
    Saved::new("residual gradient", &[x.n, x.h], x.residual_width, &RESIDUAL)
}

/// Bytes of what `operator` keeps under names that `given_back` says yes to.
pub(super) fn returned(operator: Operator, x: &Symbols<'_>, given_back: &dyn Fn(&str) -> bool) -> Bytes {
    let kept = saved(operator, x).unwrap_or_default();
    kept.iter().filter(|saved| given_back(saved.name)).map(|saved| saved.bytes).sum()
}
