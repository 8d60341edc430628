//! What a depth holds: its peak is in its part of the output layer and loss.

use crate::{Symbols, Transient, output_layer};

pub(crate) fn transients(x: &Symbols<'_>) -> Vec<Transient> {
    output_layer::transients(x)
}
