//! One measured step of the reader's own run, and what it says of the run's other layouts.
//!
//! By how much a step differs from its estimate is partly the run's (its router, its data, its machine, the release of its
//! software) and partly the layout's own. The part in common is found on published runs with several layouts of one model
//! ([`Family::common`], `tests/suite/anchor.rs`): all of it with routed experts, most with sharded weights, none for dense models,
//! where scaling by one measured step makes the others worse.

use super::interval::Family;
use shardscope_plan::Plan;

/// What a step of `plan` is taken to be over its estimate without the measured step.
#[must_use]
pub fn measured_factor(plan: &Plan) -> f64 {
    match plan.cluster().measured.step {
        Some(ratio) if ratio > 0.0 => ratio.powf(Family::from_plan(plan).common),
        _ => 1.0,
    }
}
