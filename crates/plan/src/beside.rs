//! Models that run alongside a policy in reinforcement learning.

use super::model::Model;
use super::rollout::Residence;

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
}
