//! One measured step of the user's own run, and what it says about other layouts of that run.
//!
//! A step's deviation from its estimate is partly due to the run (its router, data, machine, software release) and
//! partly to the layout itself. The common part is determined on published runs with several layouts of one model
//! ([`Family::common`], `tests/suite/anchor.rs`): all of it with routed experts, most with sharded weights, a
//! little on accelerators known from few sources, none for dense models, where scaling by one measured step makes the
//! others worse.

use super::interval::Family;
use shardscope_plan::Plan;

/// The ratio assumed between a step of `plan` and its estimate without the measured step.
#[must_use]
pub fn measured_factor(plan: &Plan) -> f64 {
    match plan.cluster().measured.step {
        Some(ratio) if ratio > 0.0 => ratio.powf(Family::from_plan(plan).common),
        _ => 1.0,
    }
}
