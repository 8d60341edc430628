//! Arithmetic of a norm: forward one read and one write; backward the output's gradient and the input
//! are read for the input's gradient and again for the weight's. `layernorm` repeats what memory says it drops: a norm
//! that is part of a projection (`LayerNormLinear`) is neither.

use super::saved::stands_alone;
use crate::eager::norms_are_kernels;
use crate::shared::row_sums;
use crate::{Operator, Symbols, Work};
use shardscope_plan::{Normalization, RecomputeModule};
use shardscope_units::Bytes;

const NORM: &[RecomputeModule] = &[RecomputeModule::LayerNorm];

pub(crate) fn work(operator: Operator, x: &Symbols<'_>) -> Vec<Work> {
    let elements = x.s_local * x.h;
    let widths = [x.residual_width, x.width];
    let [forward, backward] = if in_pieces(x) { pieces(widths) } else { one_kernel(widths) };
    let [forward, backward] = [forward, backward].map(|each| Bytes::new(elements * each));
    let mut work = vec![row_sums(operator.name(), [forward, backward], launches(x, [1, 2]))];
    if stands_alone(operator, x) {
        Work::within(&mut work, NORM);
    }
    work
}

/// Bytes of an fp32 number.
const FLOAT: u64 = 4;

/// Whether an RMSNorm is written as operations of plain PyTorch, each a kernel of its own that reads and writes the whole tensor.
fn in_pieces(x: &Symbols<'_>) -> bool {
    x.in_pieces() && x.model().normalization == Normalization::RmsNorm && !norms_are_kernels(x)
}

/// Kernels forward and backward: `fused` of a norm that is one, or those of [`pieces`].
fn launches(x: &Symbols<'_>, fused: [u64; 2]) -> [u64; 2] {
    if in_pieces(x) { [8, 16] } else { fused }
}

/// Norms of queries and keys, head by head: `columns` of a token in all, in the format of the products
/// (`megatron/core/transformer/attention.py`: `q_layernorm`, `k_layernorm`; `q_norm`, `k_norm` of transformers).
pub(crate) fn heads(x: &Symbols<'_>, columns: u64) -> Work {
    let w = x.width;
    let moved = if in_pieces(x) { pieces([w, w]) } else { one_kernel([w, w]) };
    let [forward, backward] = moved.map(|each| Bytes::new(x.n * columns * each));
    row_sums("qk_layernorm", [forward, backward], launches(x, [1, 2]).map(|each| 2 * each))
}

/// Bytes that one kernel moves for an element, forward and backward, by the widths of its input and of its output.
const fn one_kernel([input, output]: [u64; 2]) -> [u64; 2] {
    [input + output, output + 3 * input]
}

/// The same of `LlamaRMSNorm.forward`: cast to fp32, square, mean, product with the inverse root, cast back, product with the
/// weight. Backward: the weight's product and its sum, the product with the weight, the cast, the product's two gradients (one
/// summed over the row), the mean's spread over the row, the square's (a power, a product with two, one with the gradient), their
/// sum, and the cast back. As PyTorch dispatches them (`tests/record/kernels_of_a_layer.py`).
const fn pieces([r, w]: [u64; 2]) -> [u64; 2] {
    let forward = (r + FLOAT) + 2 * FLOAT + FLOAT + 2 * FLOAT + (FLOAT + w) + 2 * w;
    let weight = 3 * w + w;
    let product = 3 * FLOAT + 2 * FLOAT + FLOAT;
    let square = 2 * FLOAT + 2 * FLOAT + 3 * FLOAT;
    let backward = weight + 2 * w + (w + FLOAT) + product + FLOAT + square + 3 * FLOAT + (FLOAT + r);
    [forward, backward]
}
