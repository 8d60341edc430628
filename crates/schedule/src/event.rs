//! One piece of work of one stage.

/// Kind of work in a pipeline schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Action {
    /// Forward.
    Forward,
    /// Backward, input and weight gradients together.
    Backward,
    /// Backward for the input gradient only.
    BackwardInput,
    /// The weight gradient left over from [`Action::BackwardInput`].
    WeightGradient,
}

impl Action {
    /// The letter used in diagrams: F, B (full), I (input gradient), W.
    #[must_use]
    pub const fn letter(self) -> char {
        match self {
            Self::Forward => 'F',
            Self::Backward => 'B',
            Self::BackwardInput => 'I',
            Self::WeightGradient => 'W',
        }
    }

    /// Whether the gradient is passed on to the previous stage.
    #[must_use]
    pub const fn is_backward(self) -> bool {
        matches!(self, Self::Backward | Self::BackwardInput)
    }

    /// Whether the saved activations can be freed afterwards.
    #[must_use]
    pub const fn releases(self) -> bool {
        matches!(self, Self::Backward | Self::WeightGradient)
    }
}

/// One piece of work: which pass, for which micro-batch, on which chunk of the rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Kind of work.
    pub action: Action,
    /// Model chunk of the rank, from 0; the direction in DualPipe.
    pub chunk: u32,
    /// Micro-batch, from 0.
    pub micro_batch: u32,
    /// Whether it is joined with the next event: both wait for the inputs of either, and both results are ready at
    /// the end of both (`DualPipe`).
    pub joined: bool,
}

impl Event {
    pub(super) const fn new(action: Action, micro_batch: u32, chunk: u32) -> Self {
        Self { action, chunk, micro_batch, joined: false }
    }
}
