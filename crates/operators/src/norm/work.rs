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
    let widths = [x.residual_width, x.width];
    let [forward, backward] = if in_pieces(x) { pieces(widths) } else { one_kernel(widths) };
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

/// Norms of queries and keys, head by head: `columns` of a token in all, in the format of the products
/// (`megatron/core/transformer/attention.py`: `q_layernorm`, `k_layernorm`; `q_norm`, `k_norm` of transformers).
pub(crate) fn heads(x: &Symbols<'_>, columns: u64) -> Work {
    let w = x.width;
    let moved = if in_pieces(x) { pieces([w, w]) } else { one_kernel([w, w]) };
    let [forward, backward] = moved.map(|each| Bytes::new(x.n * columns * each));
    kernel("qk_layernorm", [forward, backward], [2, 4])
}

/// Bytes that one kernel moves for an element, forward and backward, by the widths of its input and of its output.
const fn one_kernel([input, output]: [u64; 2]) -> [u64; 2] {
    [input + output, output + 3 * input]
}

/// The same of `LlamaRMSNorm.forward`: cast to fp32, square, mean, product with the inverse root, cast back, product with the
/// weight. Backward: the weight's product and its sum, the product with the weight, the cast, the product's two gradients (one
/// summed over the row), the square's, their sum, and the cast back.
const fn pieces([r, w]: [u64; 2]) -> [u64; 2] {
    let forward = (r + FLOAT) + 2 * FLOAT + FLOAT + 2 * FLOAT + (FLOAT + w) + 2 * w;
    let weight = 3 * w + w;
    let backward =
        weight + 2 * w + (w + FLOAT) + 2 * FLOAT + (3 * FLOAT + FLOAT) + 2 * FLOAT + 3 * FLOAT + (FLOAT + r);
    [forward, backward]
}
