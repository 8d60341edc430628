//! Tensors kept for backward.

use crate::anatomy::{Saved, Symbols};

pub(in crate::anatomy) fn saved(_x: &Symbols<'_>) -> Vec<Saved> {
    Vec::new()
}
