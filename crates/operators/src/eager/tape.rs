//! Tensors as they are kept, each storage once.

use crate::{Saved, Symbols};
use shardscope_explain::Formula;
use shardscope_units::Bytes;

/// Which part of an operator reads a kept tensor, in order of forward. Backward gives tensors back from the last to the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The first linear layers: queries, keys and values, gate and up, the output layer.
    First,
    /// What stands between or behind: norms of heads, the attention's kernel, the activation, the loss.
    Core,
    /// The last linear layer: the attention's output projection, the MLP's second.
    Last,
}

/// What an operator keeps, in order of its operations.
pub(super) struct Tape<'a, 'p> {
    pub(super) x: &'a Symbols<'p>,
    /// Where the operator is.
    pub(super) step: Step,
    /// Each with the step that keeps it: the first of several that read it.
    pub(super) saved: Vec<(Step, Saved)>,
}

impl<'a, 'p> Tape<'a, 'p> {
    /// An empty one.
    pub(super) fn new(x: &'a Symbols<'p>) -> Self {
        Self { x, step: Step::Core, saved: Vec::with_capacity(16) }
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
        if !needed || self.saved.iter().any(|(_, saved)| saved.name == name) {
            return;
        }
        let saved = Saved::new(name, shape, width, formula);
        if saved.bytes > Bytes::ZERO {
            self.saved.push((self.step, saved));
        }
    }
}
