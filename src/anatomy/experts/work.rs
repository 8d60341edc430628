//! Arithmetic.

use crate::anatomy::{Symbols, Work};

pub(in crate::anatomy) fn work(_x: &Symbols<'_>) -> Vec<Work> {
    Vec::new()
}
