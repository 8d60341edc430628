//! A plan's step before its schedule is run: what a search looks at first.

use super::overlap::{Bounds, Overlaps};
use super::parts::Setting;
use super::sections::Sections;
use super::step::Run;
use crate::compute::{Device, calibration, real};
use shardscope_operators::Symbols;
use shardscope_plan::Plan;
use shardscope_schedule::Rehearsal;
use shardscope_units::Seconds;

/// Share by which sums in another order may differ.
const ROUNDING: f64 = 1e-9;

/// A step whose schedule has not been run.
pub struct Draft(Run);

impl Draft {
    /// Of `plan`; `known` takes and gives the passes over its sections.
    #[must_use]
    pub fn new(plan: &Plan, known: &mut Sections) -> Self {
        let bounds = Bounds::Estimate;
        let x = Symbols::new(plan);
        let device = Device::with(calibration(&plan.cluster().accelerator), plan.cluster(), plan.recipe());
        let rings = known.rings(plan);
        let overlaps = Overlaps::new(plan, bounds);
        Self(Run::knowing(&Setting { x, device, rings, overlaps }, known))
    }

    /// The step at least, run under whichever order ([`shardscope_schedule::Shape::least`]).
    #[must_use]
    pub fn least(&self) -> Seconds {
        self.0.step(self.0.shape.least(&self.0.durations))
    }

    /// The same without what comes once a step for data-parallel replicas: it holds for every sharding of the plan that
    /// gathers no weights, and for those that do, which take longer.
    #[must_use]
    pub fn least_before_reduction(&self) -> Seconds {
        let tail = self.0.epilogue.data + self.0.epilogue.optimizer;
        self.0.step(self.0.shape.least(&self.0.durations) - tail)
    }

    /// The least step of any plan that runs the same sections, of `micro_batches` over `pipeline` stages: their work for all
    /// micro-batches spread evenly, without a bubble, without what comes once a step, and with nothing gathered or added
    /// around a micro-batch. Some stage has at least its even share to do.
    #[must_use]
    pub fn least_over(&self, micro_batches: u64, pipeline: u64) -> Seconds {
        let share = real(micro_batches) / real(pipeline.max(1)) * (1.0 - ROUNDING);
        (self.0.passes * share + self.0.iteration) * (1.0 + self.0.straggler_factor)
    }

    /// The step, its schedule run: [`super::exact_step_seconds`].
    #[must_use]
    pub fn exact(&self) -> Seconds {
        self.0.step_by(Rehearsal::new(self.0.shape))
    }
}
