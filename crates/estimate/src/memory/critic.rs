//! A critic in its turn, on the accelerators of the policy.

use super::sums::memory_totals;
use super::totals::Totals;
use shardscope_plan::Plan;

/// What a critic's training takes on the fullest accelerator. What the value loss keeps of each token, some bytes, is not counted.
/// None where no critic trains on them: a plan whose critic could not run is refused (`shardscope_plan`, `rules/critic.rs`).
pub(super) fn critic(plan: &Plan) -> Option<Totals> {
    let variant = plan.critic()?.ok()?;
    memory_totals(&variant).into_iter().max_by_key(|totals| totals.peak_reserved)
}
