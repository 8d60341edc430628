//! Gradients of linear layers that the optimizer steps in a lower-rank space.

use super::linear_modules::LoraModules;

/// How an optimizer projects the gradients of linear layers (GaLore, Zhao et al. 2024; APOLLO, Zhu et al. 2024).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LowRank {
    /// Rank of the space.
    pub rank: u64,
    /// Linear layers whose gradients are projected.
    pub modules: LoraModules,
    /// Which side of a gradient is projected.
    pub side: ProjectedSide,
    /// What it is projected by.
    pub projection: Projection,
    /// What becomes of the step in the smaller space.
    pub update: LowRankUpdate,
    /// Whether parameters that are not projected are stepped vectors first, then matrices (LLaMA-Factory's parameter
    /// groups); otherwise in model order.
    pub vectors_first: bool,
}

/// Which side of a matrix is projected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProjectedSide {
    /// The shorter one.
    #[default]
    Shorter,
    /// The longer one.
    Longer,
    /// The output side.
    Left,
    /// The input side.
    Right,
    /// Both.
    Both,
}

/// What gradients are projected by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Projection {
    /// Singular vectors of a gradient.
    Singular,
    /// Random numbers.
    Random,
}

/// What becomes of the step in the smaller space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LowRankUpdate {
    /// It is projected back (GaLore).
    ProjectedBack,
    /// It scales the gradient's columns or rows (APOLLO).
    ScalesGradient,
}
