//! What a depth holds: the most is in its part of the output layer and loss.

use crate::anatomy::{Held, Symbols, output_layer};

pub(in crate::anatomy) fn held(x: &Symbols<'_>) -> Vec<Held> {
    output_layer::held(x)
}
