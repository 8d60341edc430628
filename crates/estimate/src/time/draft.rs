//! A plan's step before its schedule is simulated: what a search evaluates first.

use super::overlap::{Bounds, Overlaps};
use super::parts::Setting;
use super::sections::Sections;
use super::step::Run;
use crate::compute::{Device, calibration, real};
use shardscope_operators::Symbols;
use shardscope_plan::Plan;
use shardscope_schedule::Rehearsal;
use shardscope_units::Seconds;

/// Relative tolerance for sums taken in a different order.
const ROUNDING: f64 = 1e-9;

/// A step whose schedule has not been simulated.
pub struct Draft(Run);

impl Draft {
    /// The draft of `plan`, reusing and extending the sections in `known`.
    #[must_use]
    pub fn new(plan: &Plan, known: &mut Sections) -> Self {
        let bounds = Bounds::Estimate;
        let x = Symbols::new(plan);
        let device = Device::with(calibration(&plan.cluster().accelerator), plan.cluster(), plan.recipe());
        let rings = known.rings(plan);
        let overlaps = Overlaps::new(plan, bounds);
        Self(Run::knowing(&Setting { x, device, rings, overlaps }, known))
    }

    /// A lower bound on the step under any order ([`shardscope_schedule::Shape::least`]).
    #[must_use]
    pub fn least(&self) -> Seconds {
        self.0.step(self.0.shape.least(&self.0.durations))
    }

    /// The same bound without the once-per-step work of data-parallel replicas: it holds for every sharding of the
    /// plan that gathers no weights, and also for those that do, since they take longer.
    #[must_use]
    pub fn least_before_reduction(&self) -> Seconds {
        let tail = self.0.epilogue.data + self.0.epilogue.optimizer;
        self.0.step(self.0.shape.least(&self.0.durations) - tail)
    }

    /// A lower bound for any plan that runs the same sections, with `micro_batches` over `pipeline` stages: the work
    /// of all micro-batches spread evenly, without a bubble, once-per-step work, or anything gathered or added around
    /// a micro-batch. Some stage has at least its even share of the work.
    #[must_use]
    pub fn least_over(&self, micro_batches: u64, pipeline: u64) -> Seconds {
        let share = real(micro_batches) / real(pipeline.max(1)) * (1.0 - ROUNDING);
        (self.0.passes * share + self.0.iteration) * (1.0 + self.0.straggler_factor)
    }

    /// The step with its schedule simulated: [`super::exact_step_seconds`].
    #[must_use]
    pub fn exact(&self) -> Seconds {
        self.0.step_by(Rehearsal::new(self.0.shape))
    }
}
