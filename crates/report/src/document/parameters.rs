//! `report.parameters`.

use serde::Serialize;

use super::tree::Object;
use shardscope_estimate::{self as estimate, RankParameters};
use shardscope_units::Count;

/// Parameters of the model and of each rank.
#[derive(Debug, Serialize)]
pub struct Parameters {
    /// The whole model, unsharded; a tied output layer counts once.
    pub total: Count,
    /// Those that one token passes through; equals `total` in a dense model.
    pub active_per_token: Count,
    /// Those that train; equals `total` unless a part is frozen, including adapters.
    pub trained: Count,
    /// One entry for each distinct weight shard.
    pub ranks: Vec<Rank>,
}

/// The parameters that a training process on one rank counts.
#[derive(Debug, Serialize)]
pub struct Rank {
    /// Place in the pipeline group.
    pub pipeline_rank: u64,
    /// Place in the tensor group.
    pub tensor_rank: u64,
    /// Place in the expert group.
    pub expert_rank: u64,
    /// The sum of `breakdown`.
    pub count: Count,
    /// The part that trains.
    pub trained: Count,
    /// The frozen part.
    pub frozen: Count,
    /// By account: embedding, attention, mlp and so on.
    pub breakdown: Object<&'static str, Count>,
}

impl Parameters {
    pub(super) fn new(parameters: &estimate::Parameters) -> Self {
        Self {
            total: parameters.total,
            active_per_token: parameters.active_per_token,
            trained: parameters.trained,
            ranks: parameters.ranks.iter().map(Rank::new).collect(),
        }
    }
}

impl Rank {
    fn new(rank: &RankParameters) -> Self {
        Self {
            pipeline_rank: rank.pipeline_rank,
            tensor_rank: rank.tensor_rank,
            expert_rank: rank.expert_rank,
            count: rank.count,
            trained: rank.trained,
            frozen: rank.frozen(),
            breakdown: Object(
                rank.breakdown.iter().map(|(account, count)| (account.name(), count)).collect(),
            ),
        }
    }
}
