//! What backward holds: the gradients of its output and input in addition to the residual's.

use crate::transient::residual;
use crate::{Operator, Saved, Symbols, Transient};
use shardscope_explain::Formula;
use shardscope_units::Bytes;

const SOURCE: &str = "torch autograd: a node's gradients are alive while it runs";

static GRADIENTS: Formula = Formula::new("2·S·h·B", "Gradients of the norm's output and input.", SOURCE);

pub(crate) fn transients(_operator: Operator, x: &Symbols<'_>) -> Vec<Transient> {
    let gradients = Saved::new("norm gradients", &[2, x.s_local, x.h], x.width, &GRADIENTS);
    vec![Transient::new("backward of the norm", Bytes::ZERO, vec![residual(x), gradients])]
}
