//! Saved tensors, with each storage counted once.

use crate::{Saved, Symbols};
use shardscope_explain::Formula;
use shardscope_units::Bytes;

/// Which part of an operator reads a saved tensor, in forward order. Backward frees tensors from the last to the
/// first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The first linear layers: queries, keys and values, gate and up, the output layer.
    First,
    /// What comes between or after: norms of heads, the attention's kernel, the activation, the loss.
    Core,
    /// The last linear layer: the attention's output projection, the MLP's second.
    Last,
}

/// What an operator saves, in order of its operations.
pub(super) struct Tape<'a, 'p> {
    pub(super) x: &'a Symbols<'p>,
    /// The operator's current step.
    pub(super) step: Step,
    /// Each with the step that saves it: the first of several that read it.
    pub(super) saved: Vec<(Step, Saved)>,
}

impl<'a, 'p> Tape<'a, 'p> {
    /// An empty tape.
    pub(super) fn new(x: &'a Symbols<'p>) -> Self {
        Self { x, step: Step::Core, saved: Vec::with_capacity(16) }
    }

    /// Saves a tensor if `needed`; a storage that is already saved, identified by its name, is not counted again.
    pub(super) fn keep(
        &mut self,
        needed: bool,
        name: &'static str,
        shape: &[u64],
        width: u64,
        formula: &'static Formula,
    ) {
        if needed {
            self.put(Saved::new(name, shape, width, formula));
        }
    }

    /// The same for several tensors of one size, counted by the first dimension.
    pub(super) fn keep_several(
        &mut self,
        needed: bool,
        name: &'static str,
        shape: &[u64],
        width: u64,
        formula: &'static Formula,
    ) {
        if needed {
            self.put(Saved::several(name, shape, width, formula));
        }
    }

    fn put(&mut self, saved: Saved) {
        let known = self.saved.iter().any(|(_, other)| other.name == saved.name);
        if !known && saved.bytes > Bytes::ZERO {
            self.saved.push((self.step, saved));
        }
    }
}
