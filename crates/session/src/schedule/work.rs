//! The picture's sizes and the kinds of work it distinguishes.

use shardscope_schedule::Action;

/// Width of the picture, in its own units.
pub const WIDTH: u32 = 1_000;
/// Height of a stage's lane, in its own units.
pub const LANE: u32 = 20;
/// Height of the memory curve, in its own units.
pub const CURVE: u32 = 100;

/// Kinds of work that the picture colours differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Forward.
    Forward,
    /// Backward, full or only for the input gradient.
    Backward,
    /// The weight gradient on its own.
    Weight,
    /// What follows the pipeline once per step: gradients that are still reduced, the optimizer.
    End,
}

impl Work {
    /// All kinds.
    pub const ALL: [Self; 4] = [Self::Forward, Self::Backward, Self::Weight, Self::End];

    /// In words.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Forward => "forward",
            Self::Backward => "backward",
            Self::Weight => "weight gradient",
            Self::End => "end of step",
        }
    }

    /// As a class of the style sheet.
    #[must_use]
    pub const fn class(self) -> &'static str {
        match self {
            Self::Forward => "work-forward",
            Self::Backward => "work-backward",
            Self::Weight => "work-weight",
            Self::End => "work-end",
        }
    }

    pub(super) const fn from_action(action: Action) -> Self {
        match action {
            Action::Forward => Self::Forward,
            // An input gradient is drawn as a backward pass: where weight gradients are separate, the gap between
            // them shows it.
            Action::Backward | Action::BackwardInput => Self::Backward,
            Action::WeightGradient => Self::Weight,
        }
    }
}
