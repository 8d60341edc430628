//! Models that take turns with the policy on its accelerators.

use super::sums::memory_totals;
use super::totals::Totals;
use shardscope_plan::{Contradiction, Plan};

/// Memory of a critic's training on the fullest accelerator. The few bytes per token that the value loss saves are
/// not counted. None if no critic trains on these accelerators; a plan whose critic could not run is rejected
/// (`shardscope_plan`, `rules/critic.rs`).
pub(super) fn critic(plan: &Plan) -> Option<Totals> {
    fullest(plan.critic())
}

/// Memory of a reward model on the fullest accelerator while it scores, including its weights.
pub(super) fn reward(plan: &Plan) -> Option<Totals> {
    fullest(plan.reward())
}

fn fullest(variant: Option<Result<Plan, Vec<Contradiction>>>) -> Option<Totals> {
    memory_totals(&variant?.ok()?).into_iter().max_by_key(|totals| totals.peak_reserved)
}
