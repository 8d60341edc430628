//! Models beside the policy: a critic, and what it trains with of its own, and a reward model.

use super::refusals::Refusals;
use crate::{Contradiction, Field, Plan};
use shardscope_source::Code;

/// What could not run has no phase, so that the whole would be answered without it.
pub(super) fn check(plan: &Plan, refusals: &mut Refusals) {
    // What holds against the policy is said of that.
    if !refusals.0.is_empty() {
        return;
    }
    let found = [
        ("critic's own training", plan.critic(), [Field::RlCritic, Field::RlCriticMicroBatch]),
        ("reward model", plan.reward(), [Field::RlRewardModel, Field::RlRewardMicroBatch]),
    ];
    for (what, variant, fields) in found {
        let Some(Err(reasons)) = variant else { continue };
        let Some(first) = reasons.first() else { continue };
        let message = format!("the {what} cannot run: {}", first.message);
        let mut refused = Contradiction::new(Code::CriticPlan, &fields, message);
        refused.hint = Some("another micro-batch of it, or leave it elsewhere".to_owned());
        refusals.push(refused);
    }
}
