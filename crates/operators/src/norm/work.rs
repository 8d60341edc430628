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
    if !in_pieces(x) {
        return fused;
    }
    launches_in_pieces([x.residual_width, x.width])
}

/// Norms of queries and keys, head by head: `columns` of a token in all, in the format of the products
/// (`megatron/core/transformer/attention.py`: `q_layernorm`, `k_layernorm`; `q_norm`, `k_norm` of transformers).
pub(crate) fn heads(x: &Symbols<'_>, columns: u64) -> Work {
    let w = x.width;
    let (moved, launches) = if in_pieces(x) {
        let widths = [x.projected_width, w];
        (pieces(widths), launches_in_pieces(widths))
    } else {
        (one_kernel([w, w]), [1, 2])
    };
    let [forward, backward] = moved.map(|each| Bytes::new(x.n * columns * each));
    row_sums("qk_layernorm", [forward, backward], launches.map(|each| 2 * each))
}

/// Bytes that one kernel moves for an element, forward and backward, by the widths of its input and of its output.
const fn one_kernel([input, output]: [u64; 2]) -> [u64; 2] {
    [input + output, output + 3 * input]
}

/// The same of `LlamaRMSNorm.forward`, by the widths of its input and of its weight: cast to fp32, square, mean, product with the
/// inverse root, cast back, product with the weight. Backward: the weight's product and its sum, the product with the weight, the
/// cast to the input's type and to fp32, the product's two gradients (one summed over the row), the mean's spread over the row, the
/// square's (a power, a product with two, one with the gradient), their sum, and the cast back. What is in its type already is not
/// cast. As PyTorch dispatches them (`tests/record/kernels_of_a_layer.py`).
const fn pieces([input, weight]: [u64; 2]) -> [u64; 2] {
    let output = if weight > input { weight } else { input };
    let forward = cast(input, FLOAT) + 2 * FLOAT + FLOAT + 2 * FLOAT + cast(FLOAT, input) + input + output;
    let of_weight = 2 * output + input + output;
    let product = 3 * FLOAT + 2 * FLOAT + FLOAT;
    let square = 2 * FLOAT + 2 * FLOAT + 3 * FLOAT;
    let backward = of_weight
        + 2 * output
        + cast(output, input)
        + cast(input, FLOAT)
        + product
        + FLOAT
        + square
        + 3 * FLOAT
        + cast(FLOAT, input);
    [forward, backward]
}

/// The kernels of [`pieces`].
const fn launches_in_pieces([input, weight]: [u64; 2]) -> [u64; 2] {
    let casts = if input < FLOAT { 2 } else { 0 };
    [6 + casts, 14 + casts + if weight > input { 1 } else { 0 }]
}

/// Bytes of a cast from one width to another, where they differ.
const fn cast(from: u64, to: u64) -> u64 {
    if from == to { 0 } else { from + to }
}
