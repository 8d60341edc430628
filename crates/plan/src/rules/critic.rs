//! A critic beside the policy: what it trains with of its own.

use super::refusals::Refusals;
use crate::{Contradiction, Field, Plan};
use shardscope_source::Code;

/// A critic that could not run has no phase, so that the whole would be answered without it.
pub(super) fn check(plan: &Plan, refusals: &mut Refusals) {
    // What holds against the policy is said of that.
    if !refusals.0.is_empty() {
        return;
    }
    let Some(Err(reasons)) = plan.critic() else { return };
    let Some(first) = reasons.first() else { return };
    let fields = [Field::RlCritic, Field::RlCriticMicroBatch];
    let message = format!("the critic's own training cannot run: {}", first.message);
    let mut refused = Contradiction::new(Code::CriticPlan, &fields, message);
    refused.hint = Some("another micro-batch of the critic, or leave it elsewhere".to_owned());
    refusals.push(refused);
}
