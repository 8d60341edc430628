//! The walk over the space, in steps that can be stopped and taken up again. Deterministic: the same plan gives
//! the same results in the same order, however the steps are cut.

use super::Space;
use shardscope_estimate::time::{exact_step_seconds, step_seconds, time};
use shardscope_estimate::{Verdict, memory_totals, time_fault};
use shardscope_plan::{Field, Plan, Variant};
use shardscope_units::{Bytes, Quantity, Seconds};

/// Results kept, the fastest ones.
const KEPT: usize = 40;

/// One layout that was tried.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The cut.
    pub variant: Variant,
    /// Settings that differ from the plan the search began with.
    pub changes: Vec<(Field, String)>,
    /// Peak on the fullest device.
    pub peak: Bytes,
    /// Whether the peak takes some of the headroom: such results stand behind those that leave it free.
    pub tight: bool,
    /// Time of a step.
    pub step: Seconds,
}

/// A search under way.
#[derive(Clone, Debug)]
pub struct Walk {
    plan: Plan,
    space: Space,
    next: u64,
    refused: u64,
    too_large: u64,
    best: Vec<Outcome>,
    frontier: Vec<Outcome>,
}

impl Walk {
    /// The search around `plan`.
    #[must_use]
    pub fn new(plan: &Plan) -> Self {
        Self {
            plan: plan.clone(),
            space: Space::of(plan),
            next: 0,
            refused: 0,
            too_large: 0,
            best: Vec::new(),
            frontier: Vec::new(),
        }
    }

    /// Tries up to `count` more combinations; whether there are more.
    pub fn step(&mut self, count: u64) -> bool {
        let end = self.next.saturating_add(count).min(self.space.len());
        while self.next < end {
            self.attempt(self.next);
            self.next += 1;
            if self.next == self.space.len() {
                self.settle();
            }
        }
        self.next < self.space.len()
    }

    /// What was kept by a quick look is timed exactly and put into order again.
    fn settle(&mut self) {
        let found = std::mem::take(&mut self.best).into_iter().chain(std::mem::take(&mut self.frontier));
        let mut known: Vec<Variant> = Vec::new();
        for mut outcome in found {
            if known.contains(&outcome.variant) {
                continue;
            }
            known.push(outcome.variant.clone());
            let Some(plan) = outcome.variant.apply(&self.plan) else { continue };
            let time = time(&plan);
            // What no machine could do is no result.
            if time_fault(&time).is_none() {
                outcome.step = exact_step_seconds(&plan);
                self.keep(outcome);
            }
        }
    }

    fn attempt(&mut self, index: u64) {
        let tried = self.space.variant(index).and_then(|variant| Some((variant.apply(&self.plan)?, variant)));
        let Some((plan, variant)) = tried else {
            self.refused += 1;
            return;
        };
        let (capacity, headroom) = (plan.cluster().accelerator.memory, plan.recipe().headroom);
        let totals = memory_totals(&plan);
        let peak = totals.iter().map(|totals| totals.peak_reserved).max().unwrap_or_default();
        let verdicts = totals.iter().map(|totals| totals.verdict(capacity, headroom));
        let verdict = verdicts.max().unwrap_or(Verdict::Fits);
        if verdict == Verdict::OutOfMemory {
            self.too_large += 1;
            return;
        }
        let tight = verdict == Verdict::Tight;
        let step = step_seconds(&plan);
        let changes = variant.changes_from(self.space.base());
        self.keep(Outcome { variant, changes, peak, tight, step });
    }

    /// Results are kept by whether they leave the headroom free, then by time, then by memory, then by order of finding.
    fn keep(&mut self, outcome: Outcome) {
        let key = |one: &Outcome| (one.tight, one.step.get(), one.peak.number());
        let place = self.best.partition_point(|one| key(one) <= key(&outcome));
        if place < KEPT {
            self.best.insert(place, outcome.clone());
            self.best.truncate(KEPT);
        }
        let beaten = |one: &Outcome| one.step <= outcome.step && one.peak <= outcome.peak;
        if !self.frontier.iter().any(beaten) {
            self.frontier.retain(|one| !(outcome.step <= one.step && outcome.peak <= one.peak));
            let place = self.frontier.partition_point(|one| one.step < outcome.step);
            self.frontier.insert(place, outcome);
        }
    }

    /// Combinations tried and all there are.
    #[must_use]
    pub fn progress(&self) -> (u64, u64) {
        (self.next, self.space.len())
    }

    /// Combinations that Megatron would refuse.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Layouts that do not fit.
    #[must_use]
    pub fn too_large(&self) -> u64 {
        self.too_large
    }

    /// The fastest layouts that fit, the fastest first; behind them those that take some of the headroom.
    #[must_use]
    pub fn best(&self) -> &[Outcome] {
        &self.best
    }

    /// The layouts that no other beats in both time and memory, the fastest first.
    #[must_use]
    pub fn frontier(&self) -> &[Outcome] {
        &self.frontier
    }
}
