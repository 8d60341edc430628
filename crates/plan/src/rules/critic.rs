//! Models that run alongside the policy: a critic with its own training settings, and a reward model.

use super::refusals::Refusals;
use crate::{Contradiction, Field, Plan};
use shardscope_source::Code;

/// A model that could not run has no phase, so without this check the answer would silently leave it out.
pub(super) fn check(plan: &Plan, refusals: &mut Refusals) {
    // Errors of the policy itself are reported for the policy.
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
