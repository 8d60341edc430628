//! Arithmetic of a norm: forward one read and one write; backward the output's gradient and the input
//! are read for the input's gradient and again for the weight's. `layernorm` repeats what memory says it drops: a norm
//! that is part of a projection (`LayerNormLinear`) is neither.

use super::saved::stands_alone;
use crate::eager::norms_are_kernels;
use crate::shared::kernel;
use crate::{Operator, Symbols, Work};
use shardscope_plan::{Normalization, RecomputeModule};
use shardscope_units::Bytes;

const NORM: &[RecomputeModule] = &[RecomputeModule::LayerNorm];

pub(crate) fn work(operator: Operator, x: &Symbols<'_>) -> Vec<Work> {
    let elements = x.s_local * x.h;
    let [forward, backward] = if in_pieces(x) { pieces(x) } else { one_kernel(x) };
    let [forward, backward] = [forward, backward].map(|each| Bytes::new(elements * each));
    let mut work = vec![kernel(operator.name(), [forward, backward], [1, 2])];
    if stands_alone(operator, x) {
        Work::within(&mut work, NORM);
    }
    work
}

/// Bytes of an fp32 number.
const FLOAT: u64 = 4;

/// Whether an RMSNorm is written as operations of plain PyTorch, each a kernel of its own that reads and writes the whole tensor.
/// Their launches are among the small operators that an eager software's host time has beside each counted one.
fn in_pieces(x: &Symbols<'_>) -> bool {
    let recipe = x.recipe();
    recipe.software.semantics().eager_modules
        && x.model().normalization == Normalization::RmsNorm
        && !recipe.fusions.compiled_layers
        && !norms_are_kernels(x)
}

/// Bytes that one kernel moves for an element, forward and backward.
const fn one_kernel(x: &Symbols<'_>) -> [u64; 2] {
    [x.residual_width + x.width, x.width + 3 * x.residual_width]
}

/// The same of `LlamaRMSNorm.forward`: cast to fp32, square, mean, product with the inverse root, cast back, product with the
/// weight. Backward: the weight's product and its sum, the product with the weight, the cast, the product's two gradients (one
/// summed over the row), the square's, their sum, and the cast back.
const fn pieces(x: &Symbols<'_>) -> [u64; 2] {
    let (w, r) = (x.width, x.residual_width);
    let forward = (r + FLOAT) + 2 * FLOAT + FLOAT + 2 * FLOAT + (FLOAT + w) + 2 * w;
    let weight = 3 * w + w;
    let backward =
        weight + 2 * w + (w + FLOAT) + 2 * FLOAT + (3 * FLOAT + FLOAT) + 2 * FLOAT + 3 * FLOAT + (FLOAT + r);
    [forward, backward]
}
