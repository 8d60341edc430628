//! Sizes of a weight's matrices for optimizers whose states depend on them.

use shardscope_operators::Weight;
use shardscope_units::Count;

/// Widest side for which SOAP and Shampoo hold a preconditioner (`max_precond_dim` of the reference SOAP).
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

/// Elements of the square preconditioners for the two sides of a weight's matrices.
pub(super) fn squares(weight: &Weight) -> Count {
    let square = |side: u64| if side > WIDEST { 0 } else { side * side };
    match weight.local.split_last_chunk::<2>() {
        Some((outer, [rows, columns])) => Count::new(product(outer) * (square(*rows) + square(*columns))),
        None => Count::ZERO,
    }
}

#[cfg(test)]
mod tests {
    use super::{rows, sides, squares};
    use shardscope_operators::{Account, Weight};

    /// Two matrices of 3 by 5, a vector, and matrices at and beyond the widest side.
    #[test]
    fn matrices_have_sides_rows_and_squares_and_vectors_their_elements() {
        let of = |sizes: &[u64]| {
            let weight = Weight::replicated("weight", Account::Attention, sizes);
            [sides(&weight), rows(&weight), squares(&weight)].map(|count| count.get())
        };
        assert_eq!(of(&[2, 3, 5]), [3 + 5 + 3 + 5, 6, 9 + 25 + 9 + 25]);
        assert_eq!(of(&[7]), [7, 7, 0]);
        assert_eq!(of(&[3, 10_000]), [10_003, 3, 9 + 100_000_000]);
        assert_eq!(of(&[10_001, 3]), [10_004, 10_001, 9]);
    }
}
