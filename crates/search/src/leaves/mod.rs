//! The leaves of one shape: what is recomputed of it and what its data-parallel replicas share.
//!
//! Both are ordered ([`crate::dominance`]): what recomputes more takes no less time and no more memory, and so on. So of a row
//! in which each recomputes more than the one before, the first that fits is the fastest that does, and bisection finds it; and
//! where the lightest of all does not fit, nothing does.

mod rows;

use crate::dominance::{self, is_no_heavier, is_no_slower, lightest};
use crate::known::Known;
use crate::outcome::{Outcome, Tally};
use crate::results::Results;
use crate::space::Space;
use shardscope_estimate::Verdict;
use shardscope_estimate::time::Draft;
use shardscope_plan::{DpSharding, Overlap, Plan, Recompute, Variant};
use shardscope_sorting::sort_by_key;
use shardscope_source::Code;
use shardscope_units::Bytes;

const SHARDINGS: [DpSharding; 4] =
    [DpSharding::Replicated, DpSharding::OptimizerStates, DpSharding::Gradients, DpSharding::Parameters];

/// Lists of modules of which each is looked at by itself.
const FEW: usize = 3;

/// What deciding works with.
pub(crate) struct Workspace<'a> {
    pub(crate) space: &'a Space,
    pub(crate) known: &'a mut Known,
    pub(crate) tally: &'a mut Tally,
    pub(crate) results: &'a mut Results,
}

/// A shape and what is left of it, sharding by sharding.
#[derive(Clone, Debug)]
pub(crate) struct Leaves {
    shape: Variant,
    plan: Plan,
    /// What is left, the fastest last.
    rests: Vec<(DpSharding, Overlap)>,
    recomputations: Vec<Recompute>,
    /// Whether nothing of it has been looked at.
    untouched: bool,
    /// What fits, and under which sharding: whatever recomputes as much or more is no faster under one that is no faster.
    fit: Vec<(DpSharding, Recompute)>,
    /// What is too large, and under which sharding: so is what recomputes as much or less under one that is no lighter.
    too_large: Vec<(DpSharding, Recompute)>,
}

/// One leaf before it is decided.
struct Leaf {
    variant: Variant,
    plan: Plan,
}

/// What is known of a leaf's place.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    Decided,
}

/// The leaves under one sharding.
struct Row<'a, 'd> {
    workspace: &'a mut Workspace<'d>,
    leaves: &'a mut Leaves,
    rest: (DpSharding, Overlap),
    states: Vec<State>,
}

impl Leaves {
    /// All of `shape`, which is `plan` where nothing is recomputed.
    pub(crate) fn new(space: &Space, shape: Variant, plan: Plan) -> Self {
        let mut rests = space.rests(&shape);
        // The one that is no slower than most others comes last, where it is taken first.
        sort_by_key(&mut rests, |(one, _)| {
            SHARDINGS.iter().filter(|other| is_no_slower(*one, **other)).count()
        });
        let recomputations = space.recomputations(&shape);
        Self { shape, plan, rests, recomputations, untouched: true, fit: Vec::new(), too_large: Vec::new() }
    }

    /// Whether all that `less` recomputes is recomputed by `more` too, so that less is held with it. Of modules that are offloaded
    /// what is recomputed does not go to the host, and comes back in another order: nothing follows of one from another.
    fn is_within(&self, less: &Recompute, more: &Recompute) -> bool {
        if self.shape.offloaded.is_empty() { dominance::is_within(less, more) } else { less == more }
    }

    /// Whether all are decided.
    pub(crate) fn are_done(&self) -> bool {
        self.rests.is_empty()
    }

    /// Decides those under the next sharding, the fastest first.
    pub(crate) fn decide_next(&mut self, workspace: &mut Workspace<'_>) {
        // Once for a shape, before its first sharding.
        if std::mem::take(&mut self.untouched) && self.are_too_large(workspace) {
            return;
        }
        let Some(rest) = self.rests.pop() else { return };
        let states = self.recomputations.iter().map(|_| State::Open).collect();
        Row { workspace, leaves: self, rest, states }.decide();
    }

    /// Whether nothing of it fits: what recomputes most, under the lightest shardings, does not. Everything is decided then.
    fn are_too_large(&mut self, workspace: &mut Workspace<'_>) -> bool {
        let all = &self.recomputations;
        let Some(most) = all.iter().find(|most| all.iter().all(|one| self.is_within(one, most))) else {
            return false;
        };
        for (sharding, overlap) in lightest(&self.rests) {
            // One refused leaf says nothing of the others, so that nothing is decided by it.
            let leaf = Variant { recompute: most.clone(), sharding, overlap, ..self.shape.clone() };
            let Ok(plan) = leaf.retuned(&self.plan) else { return false };
            if workspace.known.fit(&plan).1 != Verdict::OutOfMemory {
                return false;
            }
        }
        workspace.tally.too_large += all.len() as u64 * self.rests.len() as u64;
        self.rests.clear();
        true
    }
}

impl Row<'_, '_> {
    fn decide(mut self) {
        let all: Vec<usize> = (0..self.states.len()).collect();
        // What earlier shardings have decided, carried over by the orders of `dominance`.
        for (sharding, fit) in self.leaves.fit.clone() {
            if is_no_slower(sharding, self.rest.0) {
                self.slower_than(&fit);
            }
        }
        for (sharding, most) in self.leaves.too_large.clone() {
            if is_no_heavier(sharding, self.rest.0) {
                self.mark_too_large(&most);
            }
        }
        let blocks: Vec<usize> = all.iter().copied().filter(|place| self.is_block(*place)).collect();
        let lists: Vec<usize> = all.iter().copied().filter(|place| !self.is_block(*place)).collect();
        // Blocks are bisected only where time grows along their row; else each is looked at by itself.
        if self.recomputation_takes_time() {
            self.decide_lists(&lists);
            self.decide_blocks(&blocks);
        } else {
            self.decide_lists(&all);
        }
    }

    /// Whether more recomputation takes no less time.
    fn recomputation_takes_time(&self) -> bool {
        self.leaves.shape.offloaded.is_empty() && dominance::recomputation_takes_time(self.rest.0)
    }

    fn recompute(&self, place: usize) -> Option<&Recompute> {
        self.leaves.recomputations.get(place)
    }

    /// Whether it is one of the row in which each recomputes a layer more than the one before, up to all of them.
    fn is_block(&self, place: usize) -> bool {
        matches!(
            self.recompute(place),
            Some(
                Recompute::Block { distribute: false, .. }
                    | Recompute::Uniform { num_layers: 1, distribute: false }
            )
        )
    }

    fn is_open(&self, place: usize) -> bool {
        self.states.get(place) == Some(&State::Open)
    }

    /// Marks a place as decided; whether it was not before.
    fn close(&mut self, place: usize) -> bool {
        self.states
            .get_mut(place)
            .is_some_and(|state| std::mem::replace(state, State::Decided) == State::Open)
    }

    /// `place` is slower than what was found, and so is what recomputes more under the same sharding.
    fn slower_from(&mut self, place: usize) {
        if self.recomputation_takes_time() {
            if let Some(least) = self.recompute(place).cloned() {
                self.slower_than(&least);
            }
        } else if self.close(place) {
            self.workspace.tally.slower += 1;
        }
    }

    /// Whatever recomputes as much as `least` or more is slower than what was found.
    fn slower_than(&mut self, least: &Recompute) {
        for place in 0..self.states.len() {
            let within = self.recompute(place).is_some_and(|more| self.leaves.is_within(least, more));
            if within && self.close(place) {
                self.workspace.tally.slower += 1;
            }
        }
    }

    /// Whatever recomputes as much as `most` or less is too large, here and under shardings that are no lighter.
    fn too_large_to(&mut self, most: &Recompute) {
        self.leaves.too_large.push((self.rest.0, most.clone()));
        self.mark_too_large(most);
    }

    fn mark_too_large(&mut self, most: &Recompute) {
        for place in 0..self.states.len() {
            let within = self.recompute(place).is_some_and(|less| self.leaves.is_within(less, most));
            if within && self.close(place) {
                self.workspace.tally.too_large += 1;
            }
        }
    }

    /// The leaf of a place; none where the software refuses it, which decides it.
    fn leaf(&mut self, place: usize) -> Option<Leaf> {
        let (sharding, overlap) = self.rest;
        let recompute = self.recompute(place)?.clone();
        let variant = Variant { recompute, sharding, overlap, ..self.leaves.shape.clone() };
        match variant.retuned(&self.leaves.plan) {
            Ok(plan) => Some(Leaf { variant, plan }),
            Err(reasons) => {
                if self.close(place) {
                    self.workspace.tally.refuse(reasons.first().map_or(Code::Size, |reason| reason.code), 1);
                }
                None
            }
        }
    }

    /// Decides by memory what is left of a leaf whose step is `least` at least, and what follows for others.
    fn weigh(&mut self, place: usize, leaf: &Leaf, draft: &Draft) {
        let (peak, verdict) = self.workspace.known.fit(&leaf.plan);
        self.settle(place, leaf, draft, peak, verdict);
    }

    fn settle(&mut self, place: usize, leaf: &Leaf, draft: &Draft, peak: Bytes, verdict: Verdict) {
        if verdict == Verdict::OutOfMemory {
            self.too_large_to(&leaf.variant.recompute);
            return;
        }
        self.work_out(place, leaf, draft, peak, verdict == Verdict::Tight);
        // A tight one beats nothing: what recomputes more may leave the headroom free.
        if verdict == Verdict::Fits {
            self.slower_from(place);
            self.leaves.fit.push((self.rest.0, leaf.variant.recompute.clone()));
        }
    }

    fn work_out(&mut self, place: usize, leaf: &Leaf, draft: &Draft, peak: Bytes, tight: bool) {
        if !self.close(place) {
            return;
        }
        let (workspace, variant) = (&mut *self.workspace, &leaf.variant);
        let least = draft.least();
        let beaten = if tight {
            workspace.results.is_tight_beaten(least, variant)
        } else {
            workspace.results.is_beaten(least, variant)
        };
        // A bound again: what was found since may beat it by now.
        if beaten {
            workspace.tally.slower += 1;
            return;
        }
        let (step, changes) = (draft.exact(), workspace.space.changes(variant));
        let outcome = Outcome { variant: variant.clone(), changes, peak, tight, step };
        if workspace.results.keep(workspace.space, outcome) {
            workspace.tally.estimated += 1;
        } else {
            workspace.tally.faults += 1;
        }
    }
}
