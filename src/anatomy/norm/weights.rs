//! Weights.

use crate::anatomy::{Operator, Symbols, Weight};

pub(in crate::anatomy) fn weights(_operator: Operator, _x: &Symbols<'_>) -> Vec<Weight> {
    Vec::new()
}
