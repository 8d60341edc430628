//! Models beside the policy in their turns, on its accelerators.

use super::sums::memory_totals;
use super::totals::Totals;
use shardscope_plan::{Contradiction, Plan};

/// What a critic's training takes on the fullest accelerator. What the value loss keeps of each token, some bytes, is not counted.
/// None where no critic trains on them: a plan whose critic could not run is refused (`shardscope_plan`, `rules/critic.rs`).
pub(super) fn critic(plan: &Plan) -> Option<Totals> {
    fullest(plan.critic())
}

/// What a reward model takes on the fullest accelerator while it scores, its weights included.
pub(super) fn reward(plan: &Plan) -> Option<Totals> {
    fullest(plan.reward())
}

fn fullest(variant: Option<Result<Plan, Vec<Contradiction>>>) -> Option<Totals> {
    memory_totals(&variant?.ok()?).into_iter().max_by_key(|totals| totals.peak_reserved)
}
