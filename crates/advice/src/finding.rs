//! How a changed plan is evaluated.

use shardscope_estimate::device_peak;
use shardscope_estimate::time::exact_step_seconds;
use shardscope_plan::{Field, Plan, Variant};
use shardscope_report::{Expected, Finding, Report};
use shardscope_units::{Bytes, Seconds, percent, seconds};

/// A plan with its report, and helpers for trying changes.
#[derive(Clone, Copy, Debug)]
pub struct Advisor<'a> {
    /// The plan that advice is given on.
    pub plan: &'a Plan,
    /// Its report.
    pub report: &'a Report,
}

/// A change with its estimates.
#[derive(Clone, Debug)]
pub(super) struct Trial {
    pub(super) change: Vec<(Field, String)>,
    pub(super) peak: Bytes,
    pub(super) step: Option<Seconds>,
}

impl<'a> Advisor<'a> {
    /// For `plan` and its `report`.
    #[must_use]
    pub fn new(plan: &'a Plan, report: &'a Report) -> Self {
        Self { plan, report }
    }

    /// Whether `trial` is faster than the plan as it is.
    pub(super) fn gains(&self, trial: &Trial) -> bool {
        trial.step.is_some_and(|step| step < self.report.time.step)
    }

    /// What part of a step waits for a kind of communication (`tensor`, `expert`, `data`), in words.
    pub(super) fn waiting(&self, kind: &str) -> String {
        let (waits, share) = self.report.time.waits(kind);
        format!("{} of the step ({}) is exposed", seconds(waits), percent(share))
    }

    /// The plan's own variant, as a starting point for changes.
    pub(super) fn variant(&self) -> Variant {
        Variant::from_plan(self.plan)
    }

    /// The estimates of `variant`; `None` if Megatron would refuse it or if nothing changes.
    pub(super) fn attempt(&self, variant: &Variant) -> Option<Trial> {
        let own = self.variant();
        // Not a trial: it would be reported as a change with nothing to gain.
        if *variant == own {
            return None;
        }
        let plan = variant.apply(self.plan)?;
        // What PyTorch would reserve, without releasing cached blocks: a proposal should fit comfortably.
        let peak = device_peak(&plan).0;
        // The exact step, not the quick one of the search: it is shown next to the report's own figure.
        Some(Trial { change: variant.changes_from(&own), peak, step: Some(exact_step_seconds(&plan)) })
    }

    /// Total memory of the device, as reported by the driver.
    pub(super) fn capacity(&self) -> Bytes {
        self.report.memory.capacity
    }

    /// The peak of the unchanged plan.
    pub(super) fn peak(&self) -> Bytes {
        let memory = &self.report.memory;
        let phases = memory.rl.iter().flat_map(|rl| &rl.phases).map(|phase| phase.breakdown.value());
        phases.fold(memory.worst.peak_reserved, Bytes::max)
    }
}

impl Trial {
    /// Whether it fits in `capacity`.
    pub(super) fn fits(&self, capacity: Bytes) -> bool {
        self.peak <= capacity
    }

    /// The time of a step; infinity if there is none.
    pub(super) fn seconds(&self) -> f64 {
        // Sorts after all trials that have a time.
        self.step.map_or(f64::INFINITY, Seconds::get)
    }

    /// The time of a step, in words.
    pub(super) fn pace(&self) -> String {
        self.step.map_or_else(String::new, |step| format!(", {} per step", seconds(step)))
    }

    /// The finding that proposes it.
    pub(super) fn finding(self, code: &'static str, message: String, why: impl Into<String>) -> Finding {
        let expected = Expected { peak_reserved: Some(self.peak), step: self.step };
        Finding { code, message, why: why.into(), change: self.change, expected }
    }
}
