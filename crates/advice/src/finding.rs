//! How a changed plan is tried.

use shardscope_estimate::device_peak;
use shardscope_estimate::time::exact_step_seconds;
use shardscope_plan::{Field, Plan, Variant};
use shardscope_report::{Expected, Finding, Report};
use shardscope_units::{Bytes, Seconds, percent, seconds};

/// A plan with its report, and a hand for trying changes.
#[derive(Clone, Copy, Debug)]
pub struct Advisor<'a> {
    /// The plan that advice is given on.
    pub plan: &'a Plan,
    /// Its report.
    pub report: &'a Report,
}

/// A change that was estimated, with what it comes to.
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

    /// The plan's own variant, to be changed.
    pub(super) fn variant(&self) -> Variant {
        Variant::from_plan(self.plan)
    }

    /// What `variant` comes to; none where Megatron would refuse it or where nothing changes.
    pub(super) fn attempt(&self, variant: &Variant) -> Option<Trial> {
        let own = self.variant();
        // No trial: it would be told as a change with nothing to gain.
        if *variant == own {
            return None;
        }
        let plan = variant.apply(self.plan)?;
        // What PyTorch would reserve, without releasing cached blocks: what is proposed should fit with ease.
        let peak = device_peak(&plan).0;
        // The exact step, not the quick one of the search: it is told beside the report's own figure.
        Some(Trial { change: variant.changes_from(&own), peak, step: Some(exact_step_seconds(&plan)) })
    }

    /// Total memory of the device, as the driver reports it.
    pub(super) fn capacity(&self) -> Bytes {
        self.report.memory.capacity
    }

    /// The peak of the plan as it is.
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

    /// The time of a step; without one, never.
    pub(super) fn seconds(&self) -> f64 {
        // Sorts behind all trials that have a time.
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
