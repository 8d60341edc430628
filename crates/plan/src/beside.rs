//! Models that run alongside a policy in reinforcement learning.

use super::model::Model;
use super::rollout::{Residence, RolloutEngine};

/// Models on the policy's accelerators that have their own shape.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Beside {
    /// The critic's model, if it differs from the policy's.
    pub critic: Option<Box<Model>>,
    /// Whether the critic's samples come padded, with a mask.
    pub critic_padded: bool,
    /// The model that scores rollouts.
    pub reward: Option<Box<RewardModel>>,
}

/// A frozen model with one output instead of an output layer.
#[derive(Clone, Debug, PartialEq)]
pub struct RewardModel {
    /// Its shape.
    pub model: Model,
    /// Where its weights live while it is not scoring.
    pub residence: Residence,
    /// Its micro-batch, if it differs from the policy's: sequences, or tokens if samples are packed by tokens.
    pub batch: Option<u64>,
    /// Whether its samples come padded, with a mask.
    pub padded: bool,
    /// The engine that runs it, if its residence is one.
    pub served: Option<Served>,
}

/// An inference engine that serves a model on the policy's accelerators.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Served {
    /// Which.
    pub engine: RolloutEngine,
    /// Fraction of an accelerator's memory given to it, 0 to 1.
    pub fraction: f64,
    /// Its tensor parallel size.
    pub tensor: u64,
}
