//! Weights.

use crate::anatomy::{Symbols, Weight};

pub(in crate::anatomy) fn weights(_x: &Symbols<'_>) -> Vec<Weight> {
    Vec::new()
}
