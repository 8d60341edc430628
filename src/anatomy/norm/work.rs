//! Arithmetic.

use crate::anatomy::{Operator, Symbols, Work};

pub(in crate::anatomy) fn work(_operator: Operator, _x: &Symbols<'_>) -> Vec<Work> {
    Vec::new()
}
