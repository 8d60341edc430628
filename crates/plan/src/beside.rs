//! Models beside a policy, in reinforcement learning.

use super::model::Model;
use super::rollout::Residence;

/// Models on the policy's accelerators that have a shape of their own.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Beside {
    /// The critic's, where it is not the policy's.
    pub critic: Option<Box<Model>>,
    /// Whether the critic's samples come padded, with a mask.
    pub critic_padded: bool,
    /// The model that scores rollouts.
    pub reward: Option<Box<RewardModel>>,
}

/// A frozen model with one output in the place of the output layer.
#[derive(Clone, Debug, PartialEq)]
pub struct RewardModel {
    /// Its shape.
    pub model: Model,
    /// Where its weights are while it does not score.
    pub residence: Residence,
    /// Its micro-batch where it is not the policy's: sequences, or tokens where samples are packed by tokens.
    pub batch: Option<u64>,
    /// Whether its samples come padded, with a mask.
    pub padded: bool,
}
