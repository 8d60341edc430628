//! One piece of work of one stage.

/// Kind of work in a pipeline schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Action {
    /// Forward.
    Forward,
    /// Backward, input and weight gradients together.
    Backward,
    /// Backward for the input gradient alone.
    BackwardInput,
    /// The weight gradient left over from [`Action::BackwardInput`].
    WeightGradient,
}

impl Action {
    /// The letter used in drawings: F, B (whole), I (input gradient), W.
    #[must_use]
    pub const fn letter(self) -> char {
        match self {
            Self::Forward => 'F',
            Self::Backward => 'B',
            Self::BackwardInput => 'I',
            Self::WeightGradient => 'W',
        }
    }

    /// Whether the gradient goes on to the stage before.
    #[must_use]
    pub const fn is_backward(self) -> bool {
        matches!(self, Self::Backward | Self::BackwardInput)
    }

    /// Whether the kept activations can be given back afterwards.
    #[must_use]
    pub const fn releases(self) -> bool {
        matches!(self, Self::Backward | Self::WeightGradient)
    }
}

/// One piece of work: what, for which micro-batch, on which chunk of the rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Kind of work.
    pub action: Action,
    /// Model chunk of the rank, from 0; the direction in DualPipe.
    pub chunk: u32,
    /// Micro-batch, from 0.
    pub micro_batch: u32,
    /// Whether it runs as one with the next event: both wait for what either needs, and both results
    /// are ready at the end of both (`DualPipe`).
    pub joined: bool,
}

impl Event {
    pub(super) const fn new(action: Action, micro_batch: u32, chunk: u32) -> Self {
        Self { action, chunk, micro_batch, joined: false }
    }
}
