//! The fullest device of a plan and the verdict on it, without a report's explanations: what searches and advice
//! need.

use super::phases::{RlMemory, phases};
use super::sums::memory_totals;
use super::totals::Totals;
use super::verdict::Verdict;
use shardscope_explain::Breakdown;
use shardscope_plan::Plan;
use shardscope_units::Bytes;

/// Memory in use on the fullest device of `plan` at its peak, and the most severe verdict.
#[must_use]
pub fn device_peak(plan: &Plan) -> (Bytes, Verdict) {
    device_peak_of(plan, &memory_totals(plan))
}

/// [`device_peak`] of a plan whose ranks hold `totals`.
///
/// Training's peak is not the whole story if rollouts share its devices: another phase may hold more.
#[must_use]
pub fn device_peak_of(plan: &Plan, totals: &[Totals]) -> (Bytes, Verdict) {
    let (capacity, headroom) = (plan.cluster().accelerator.memory, plan.recipe().headroom);
    let fullest = totals.iter().max_by_key(|totals| totals.peak_reserved);
    let verdicts = totals.iter().map(|totals| totals.verdict(capacity, headroom));
    let rl = phases(plan, totals);
    let verdict = verdicts.chain(rl.as_ref().map(RlMemory::verdict)).max().unwrap_or(Verdict::Fits);
    let training = fullest.map(|totals| totals.peak_reserved).unwrap_or_default();
    let shared = rl.iter().flat_map(|rl| &rl.phases).map(|phase| Breakdown::value(&phase.breakdown));
    (shared.fold(training, Bytes::max), verdict)
}
