//! What a walk has found so far, and what a layout must beat to be of interest.

use super::outcome::Outcome;
use super::space::Space;
use shardscope_estimate::step_fault;
use shardscope_plan::Variant;
use shardscope_units::Seconds;

/// The layouts that a walk keeps.
#[derive(Clone, Debug, Default)]
pub(crate) struct Results {
    /// The fastest layout of each of the fastest cuts that fit.
    pub(crate) best: Vec<Outcome>,
    /// The same for layouts that take part of the headroom.
    pub(crate) tight: Vec<Outcome>,
    /// Layouts that no other beats in both time and memory.
    pub(crate) frontier: Vec<Outcome>,
    /// The number of cuts kept.
    listed: usize,
}

impl Results {
    /// Empty results with room for `listed` cuts.
    pub(crate) fn new(listed: usize) -> Self {
        Self { listed: listed.max(1), ..Self::default() }
    }

    /// Whether a step of at least `least` is too slow to be kept for a layout of the same cut as `variant`: it must
    /// be faster than the cut's own best, and than the last layout kept.
    pub(crate) fn is_beaten(&self, least: Seconds, variant: &Variant) -> bool {
        let of_cut = self.best.iter().find(|one| one.is_of_cut(variant));
        // While there is room, the list as a whole beats nothing.
        let last = self.best.last().filter(|_| self.best.len() >= self.listed);
        of_cut.into_iter().chain(last).any(|one| least >= one.step)
    }

    /// The same for a layout that takes part of the headroom: a faster one of that kind from the same cut beats it,
    /// too.
    pub(crate) fn is_tight_beaten(&self, least: Seconds, variant: &Variant) -> bool {
        self.is_beaten(least, variant)
            || self.tight.iter().any(|one| one.is_of_cut(variant) && one.step <= least)
    }

    /// Keeps `outcome` if it is of interest. Returns false if it violates a physical limit, in which case it is no
    /// result.
    pub(crate) fn keep(&mut self, space: &Space, outcome: Outcome) -> bool {
        // A step faster than the hardware allows is an error of the estimate, and would win every search.
        let fault = outcome.variant.apply(&space.plan).and_then(|plan| step_fault(&plan, outcome.step));
        if fault.is_some() {
            return false;
        }
        self.put(outcome);
        true
    }

    /// Merges the results of another search over part of the same space.
    pub(crate) fn join(&mut self, other: &Self) {
        let all = other.best.iter().chain(&other.tight).chain(&other.frontier);
        all.for_each(|outcome| self.put(outcome.clone()));
    }

    fn put(&mut self, outcome: Outcome) {
        insert(if outcome.tight { &mut self.tight } else { &mut self.best }, &outcome, self.listed);
        // `<=` in both: of equal layouts the first one found stays, so the answer does not depend on how the walk is
        // divided.
        let beaten = |one: &Outcome| one.step <= outcome.step && one.peak <= outcome.peak;
        if !self.frontier.iter().any(beaten) {
            self.frontier.retain(|one| !(outcome.step <= one.step && outcome.peak <= one.peak));
            let place = self.frontier.partition_point(|one| one.step < outcome.step);
            self.frontier.insert(place, outcome);
        }
    }
}

/// Inserts `outcome` at its rank, one per cut and `listed` at most.
fn insert(list: &mut Vec<Outcome>, outcome: &Outcome, listed: usize) {
    if let Some(place) = list.iter().position(|one| one.is_of_cut(&outcome.variant)) {
        let rank = list.get(place).map(Outcome::rank);
        if rank.is_some_and(|rank| rank <= outcome.rank()) {
            return;
        }
        // Only the fastest layout of a cut (degrees and micro-batch) is listed; otherwise the list would repeat one
        // layout ten times.
        list.remove(place);
    }
    let place = list.partition_point(|one| one.rank() <= outcome.rank());
    list.insert(place, outcome.clone());
    list.truncate(listed);
}
