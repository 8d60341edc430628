//! Sizes of a weight's matrices, of which some optimizers hold states.

use shardscope_operators::Weight;
use shardscope_units::Count;

/// Widest side of which SOAP and Shampoo hold a preconditioner (`max_precond_dim` of the reference SOAP).
const WIDEST: u64 = 10_000;

pub(super) fn product(sizes: &[u64]) -> u64 {
    sizes.iter().product()
}

/// Row and column sums of a weight's matrices; all elements of a vector.
pub(super) fn sides(weight: &Weight) -> Count {
    match weight.local.split_last_chunk::<2>() {
        Some((outer, [rows, columns])) => Count::new(product(outer) * (rows + columns)),
        None => weight.count(),
    }
}

/// Rows of a weight's matrices; all elements of a vector.
pub(super) fn rows(weight: &Weight) -> Count {
    match weight.local.split_last() {
        Some((_, rows)) if !rows.is_empty() => Count::new(product(rows)),
        _ => weight.count(),
    }
}

/// Elements of the squares over the two sides of a weight's matrices.
pub(super) fn squares(weight: &Weight) -> Count {
    let square = |side: u64| if side > WIDEST { 0 } else { side * side };
    match weight.local.split_last_chunk::<2>() {
        Some((outer, [rows, columns])) => Count::new(product(outer) * (square(*rows) + square(*columns))),
        None => Count::ZERO,
    }
}
