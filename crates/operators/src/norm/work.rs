//! Arithmetic of a norm: forward one read and one write; backward the output's gradient and the input
//! are read for the input's gradient and again for the weight's. `layernorm` repeats what memory says it drops: a norm
//! that is part of a projection (`LayerNormLinear`) is neither.

use super::saved::stands_alone;
use crate::shared::kernel;
use crate::{Operator, Symbols, Work};
use shardscope_plan::RecomputeModule;
use shardscope_units::Bytes;

const NORM: &[RecomputeModule] = &[RecomputeModule::LayerNorm];

pub(crate) fn work(operator: Operator, x: &Symbols<'_>) -> Vec<Work> {
    let elements = x.s_local * x.h;
    let forward = Bytes::new(elements * (x.residual_width + x.width));
    let backward = Bytes::new(elements * (x.width + 3 * x.residual_width));
    let mut work = vec![kernel(operator.name(), [forward, backward], [1, 2])];
    if stands_alone(operator, x) {
        Work::within(&mut work, NORM);
    }
    work
}
