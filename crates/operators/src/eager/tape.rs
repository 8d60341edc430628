//! Tensors as they are kept, each storage once.

use crate::{Saved, Symbols};
use shardscope_explain::Formula;
use shardscope_units::Bytes;

/// What an operator keeps, in order of its operations.
pub(super) struct Tape<'a, 'p> {
    pub(super) x: &'a Symbols<'p>,
    pub(super) saved: Vec<Saved>,
}

impl<'a, 'p> Tape<'a, 'p> {
    /// An empty one.
    pub(super) fn new(x: &'a Symbols<'p>) -> Self {
        Self { x, saved: Vec::with_capacity(16) }
    }

    /// Keeps a tensor if `needed`; a storage that is kept already, known by its name, is not counted again.
    pub(super) fn keep(
        &mut self,
        needed: bool,
        name: &'static str,
        shape: &[u64],
        width: u64,
        formula: &'static Formula,
    ) {
        if !needed || self.saved.iter().any(|saved| saved.name == name) {
            return;
        }
        let saved = Saved::new(name, shape, width, formula);
        if saved.bytes > Bytes::ZERO {
            self.saved.push(saved);
        }
    }
}
