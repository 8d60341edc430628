//! Arithmetic of a norm: in forward one read and one write; in backward the output's gradient and the input are read
//! for the input's gradient and again for the weight's. `layernorm` recomputes exactly what the memory estimate
//! drops: a norm that is part of a projection (`LayerNormLinear`) is neither dropped nor recomputed.

use super::saved::stands_alone;
use crate::eager::norms_are_kernels;
use crate::shared::row_sums;
use crate::{Kernel, Operator, Symbols, Work, as_written};
use shardscope_plan::{NormPlaces, NormProduct, Normalization, RecomputeModule, Router};
use shardscope_units::Bytes;

const NORM: &[RecomputeModule] = &[RecomputeModule::LayerNorm];

pub(crate) fn work(operator: Operator, x: &Symbols<'_>) -> Vec<Work> {
    let elements = x.s_local * x.h;
    // After attention and MLP it reads their output.
    let behind = operator != Operator::FinalNorm && x.model().arrangement.norm_places == NormPlaces::Behind;
    let input = if behind && in_pieces(x) { x.projected_width } else { x.residual_width };
    let widths = [input, x.width];
    let [forward, backward] = if in_pieces(x) { pieces(x, widths) } else { one_kernel(widths) };
    let [forward, backward] = [forward, backward].map(|each| Bytes::new(elements * each));
    let launches = if in_pieces(x) { launches_in_pieces(x, widths) } else { [1, 2] };
    let mut work = if x.as_written() && in_pieces(x) {
        vec![as_written::alone(Kernel::new(operator.name(), [forward, backward], launches))]
    } else {
        vec![row_sums(operator.name(), [forward, backward], launches)]
    };
    if stands_alone(operator, x) {
        Work::within(&mut work, NORM);
    }
    work
}

/// Bytes of an fp32 number.
const FLOAT: u64 = 4;

/// Whether an RMSNorm is written in plain PyTorch operations, each a separate kernel that reads and writes the whole
/// tensor.
fn in_pieces(x: &Symbols<'_>) -> bool {
    let apart = x.in_pieces() && !norms_are_kernels(x) || x.as_written() && !x.recipe().fusions.norm;
    apart && x.model().normalization == Normalization::RmsNorm
}

/// A plain PyTorch norm after attention or MLP, if there is one before each as well (Gemma 2).
pub(crate) fn behind(x: &Symbols<'_>, name: &'static str) -> Option<Work> {
    behind_of(x, name, x.projected_width)
}

/// The same behind what has numbers of `input` bytes.
pub(crate) fn behind_of(x: &Symbols<'_>, name: &'static str, input: u64) -> Option<Work> {
    let there = in_pieces(x) && x.model().arrangement.norm_places == NormPlaces::Around;
    let widths = [input, x.width];
    let bytes = pieces(x, widths).map(|each| Bytes::new(x.s_local * x.h * each));
    there.then(|| row_sums(name, bytes, launches_in_pieces(x, widths)))
}

/// Whether the product with the weight is in fp32 and its result is cast to the input's dtype, so that a wider weight does
/// not widen the output.
pub(crate) fn keeps_type(x: &Symbols<'_>) -> bool {
    matches!(
        x.model().arrangement.norm_product,
        NormProduct::Wide | NormProduct::Widened | NormProduct::Raised | NormProduct::PlusOne
    )
}

/// Norms of queries and keys, head by head: `columns` of a token in total, in the compute format
/// (`megatron/core/transformer/attention.py`: `q_layernorm`, `k_layernorm`; `q_norm`, `k_norm` of transformers).
pub(crate) fn heads(x: &Symbols<'_>, columns: u64) -> Work {
    let w = x.width;
    let (moved, launches) = if in_pieces(x) {
        let widths = [x.projected_width, w];
        (pieces(x, widths), launches_in_pieces(x, widths))
    } else {
        (one_kernel([w, w]), [1, 2])
    };
    let [forward, backward] = moved.map(|each| Bytes::new(x.n * columns * each));
    let norms = if x.borrows { 1 } else { 2 };
    row_sums("qk_layernorm", [forward, backward], launches.map(|each| norms * each))
}

/// The norm of values, without a weight, if they have one: `columns` of a token in total.
pub(crate) fn values(x: &Symbols<'_>, columns: u64) -> Option<Work> {
    let input = x.projected_width;
    let [forward, backward] = wide_pieces(input, false);
    // Neither the product with a weight nor, in backward, that of the gradient.
    let bytes = [forward - 2 * FLOAT, backward - 2 * FLOAT].map(|each| Bytes::new(x.n * columns * each));
    let casts = if input < FLOAT { 2 } else { 0 };
    (x.model().arrangement.value_norms && !x.borrows && in_pieces(x))
        .then(|| row_sums("value_layernorm", bytes, [5 + casts, 11 + casts]))
}

/// The norm of the residual stream without weights that a router reads, if it has one.
pub(crate) fn of_router(x: &Symbols<'_>) -> Option<Work> {
    let input = x.residual_width;
    let [forward, backward] = wide_pieces(input, false);
    let bytes = [forward - 2 * FLOAT, backward - 2 * FLOAT].map(|each| Bytes::new(x.s_local * x.h * each));
    let casts = if input < FLOAT { 2 } else { 0 };
    (x.model().arrangement.router == Router::Normed && in_pieces(x))
        .then(|| row_sums("router_layernorm", bytes, [5 + casts, 11 + casts]))
}

/// A norm of `columns` columns of a latent in latent attention, if it is written in plain PyTorch operations.
pub(crate) fn latent(x: &Symbols<'_>, name: &'static str, columns: u64) -> Option<Work> {
    let widths = [x.projected_width, x.width];
    let bytes = pieces(x, widths).map(|each| Bytes::new(x.s_local * columns * each));
    in_pieces(x).then(|| row_sums(name, bytes, launches_in_pieces(x, widths)))
}

/// Bytes that one kernel moves for an element, forward and backward, by the widths of its input and of its output.
const fn one_kernel([input, output]: [u64; 2]) -> [u64; 2] {
    [input + output, output + 3 * input]
}

/// The same for `LlamaRMSNorm.forward`, by the widths of its input and of its weight: cast to fp32, square, mean,
/// product with the inverse root, cast back, product with the weight. Backward: the weight's product and its sum, the
/// product with the weight, the cast to the input's dtype and to fp32, the product's two gradients (one summed over
/// the row), the mean's spread over the row, the square's (a power, a product with two, one with the gradient), their
/// sum, and the cast back. What already has the target dtype is not cast. As PyTorch dispatches them
/// (`tests/record/kernels_of_a_layer.py`). If the product with the weight is in fp32 (`Olmo2RMSNorm`,
/// `Gemma2RMSNorm`), it comes before the cast back (`tests/record/kernels_of_families.py`).
fn pieces(x: &Symbols<'_>, [input, weight]: [u64; 2]) -> [u64; 2] {
    if keeps_type(x) {
        return wide_pieces(input, x.trains);
    }
    let output = if weight > input { weight } else { input };
    let forward = cast(input, FLOAT) + 2 * FLOAT + FLOAT + 2 * FLOAT + cast(FLOAT, input) + input + output;
    // A frozen weight has no gradient.
    let of_weight = if x.trains { 2 * output + input + output } else { 0 };
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

/// The same for a norm that multiplies by its weight in fp32.
const fn wide_pieces(input: u64, trains: bool) -> [u64; 2] {
    let casts = cast(input, FLOAT) + cast(FLOAT, input);
    let forward = casts + 2 * FLOAT + FLOAT + 2 * FLOAT + 2 * FLOAT;
    let of_weight = 2 * FLOAT + if trains { 3 * FLOAT + FLOAT } else { 0 };
    let product = 3 * FLOAT + 2 * FLOAT + FLOAT;
    let square = 2 * FLOAT + 2 * FLOAT + 3 * FLOAT;
    [forward, casts + of_weight + product + FLOAT + square + 3 * FLOAT]
}

/// The kernels of [`pieces`].
fn launches_in_pieces(x: &Symbols<'_>, [input, weight]: [u64; 2]) -> [u64; 2] {
    let casts = if input < FLOAT { 2 } else { 0 };
    // The product and the sum of the weight's gradient, and their cast.
    let own = if x.trains { 2 } else { 0 };
    if keeps_type(x) {
        // For the weight, its sum with one and its cast, and the cast of its gradient.
        let narrow = u64::from(weight < FLOAT);
        let back = if x.trains { narrow } else { 0 };
        let ahead = match x.model().arrangement.norm_product {
            NormProduct::PlusOne => 1 + narrow,
            NormProduct::Raised => narrow,
            _ => 0,
        };
        return [6 + casts + ahead, 12 + own + casts + back];
    }
    [6 + casts, 12 + own + casts + if weight > input { 1 } else { 0 }]
}

/// Bytes of a cast from one width to another, if they differ.
const fn cast(from: u64, to: u64) -> u64 {
    if from == to { 0 } else { from + to }
}
