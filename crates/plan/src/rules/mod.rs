//! What Megatron refuses at start (`arguments.py`, `transformer_config.py`, `parallel_state.py`, `schedules.py`),
//! rule by rule, and sizes beyond any real machine.

mod adapters;
mod batch;
mod bounds;
mod compiled_step;
mod critic;
mod encoder;
mod experts;
mod mixers;
mod offload;
mod parallel;
mod refusals;
mod shape;
mod tower;
mod training;

use super::{Contradiction, Plan};
use refusals::Refusals;

/// Every reason against the plan.
pub(super) fn refused(plan: &Plan) -> Vec<Contradiction> {
    let mut refusals = Refusals::default();
    bounds::each(plan, &mut refusals);
    // Sizes beyond the bounds are not worth dividing.
    if refusals.0.is_empty() {
        // Every rule runs regardless of what others refuse: contradictions seldom come alone.
        shape::check(plan, &mut refusals);
        tower::check(plan, &mut refusals);
        encoder::check(plan, &mut refusals);
        mixers::check(plan, &mut refusals);
        experts::check(plan, &mut refusals);
        parallel::check(plan, &mut refusals);
        batch::check(plan, &mut refusals);
        training::check(plan, &mut refusals);
        compiled_step::check(plan, &mut refusals);
        adapters::check(plan, &mut refusals);
        bounds::products(plan, &mut refusals);
        critic::check(plan, &mut refusals);
    }
    refusals.0
}
