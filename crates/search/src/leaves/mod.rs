//! The leaves of one shape: what is recomputed and what its data-parallel replicas shard.
//!
//! Both are ordered ([`crate::dominance`]): more recomputation takes no less time and no more memory, and likewise
//! for sharding. So in a row where each leaf recomputes more than the previous one, the first that fits is the
//! fastest that does, and bisection finds it; and if the lightest leaf of all does not fit, none does.

mod rows;

use crate::dominance::{self, is_no_heavier, is_no_slower, lightest};
use crate::known::Known;
use crate::outcome::{Outcome, Tally};
use crate::results::Results;
use crate::space::Space;
use shardscope_estimate::Verdict;
use shardscope_estimate::time::Draft;
use shardscope_plan::{DpSharding, Overlap, Plan, Recompute, Variant};
use shardscope_source::Code;
use shardscope_units::Bytes;

const SHARDINGS: [DpSharding; 4] =
    [DpSharding::Replicated, DpSharding::OptimizerStates, DpSharding::Gradients, DpSharding::Parameters];

/// Up to this many lists of modules, each is examined individually.
const FEW: usize = 3;

/// The state needed to decide leaves.
pub(crate) struct Workspace<'a> {
    pub(crate) space: &'a Space,
    pub(crate) known: &'a mut Known,
    pub(crate) tally: &'a mut Tally,
    pub(crate) results: &'a mut Results,
}

/// A shape and its undecided leaves, by sharding.
#[derive(Clone, Debug)]
pub(crate) struct Leaves {
    shape: Variant,
    plan: Plan,
    /// The remaining shardings, the fastest last.
    rests: Vec<(DpSharding, Overlap)>,
    recomputations: Vec<Recompute>,
    /// Whether nothing of it has been examined yet.
    untouched: bool,
    /// Leaves that fit, with their sharding: anything that recomputes at least as much is no faster under a sharding
    /// that is no faster.
    fit: Vec<(DpSharding, Recompute)>,
    /// Leaves that are too large, with their sharding: so is anything that recomputes at most as much under a
    /// sharding that is no lighter.
    too_large: Vec<(DpSharding, Recompute)>,
}

/// One leaf before it is decided.
struct Leaf {
    variant: Variant,
    plan: Plan,
}

/// Whether a leaf has been decided.
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
    /// All leaves of `shape`; `plan` is the shape without recomputation.
    pub(crate) fn new(space: &Space, shape: Variant, plan: Plan) -> Self {
        let mut rests = space.rests(&shape);
        // The sharding that is no slower than most others comes last, because the last is taken first.
        rests.sort_by_key(|(one, _)| SHARDINGS.iter().filter(|other| is_no_slower(*one, **other)).count());
        let recomputations = space.recomputations(&shape);
        Self { shape, plan, rests, recomputations, untouched: true, fit: Vec::new(), too_large: Vec::new() }
    }

    /// Whether `more` recomputes everything that `less` does, so that it needs no more memory.
    fn is_within(&self, less: &Recompute, more: &Recompute) -> bool {
        if self.recomputation_saves_memory() { dominance::is_within(less, more) } else { less == more }
    }

    /// Whether more recomputation needs no more memory. For offloaded modules, recomputed tensors do not go to the
    /// host, and what does go comes back in a different order. On one GPU with eager modules, reserved memory follows
    /// the order of allocations, and the smaller allocations of recomputation can split a block that a later tensor
    /// would have used in full.
    fn recomputation_saves_memory(&self) -> bool {
        let follows_allocations =
            self.plan.layout().world_size == 1 && self.plan.recipe().software.semantics().eager_modules;
        self.shape.offloaded.is_empty() && !follows_allocations
    }

    /// Whether all leaves are decided.
    pub(crate) fn are_done(&self) -> bool {
        self.rests.is_empty()
    }

    /// Decides the leaves under the next sharding, the fastest first.
    pub(crate) fn decide_next(&mut self, workspace: &mut Workspace<'_>) {
        // Once per shape, before its first sharding.
        if std::mem::take(&mut self.untouched) && self.are_too_large(workspace) {
            return;
        }
        let Some(rest) = self.rests.pop() else { return };
        let states = self.recomputations.iter().map(|_| State::Open).collect();
        Row { workspace, leaves: self, rest, states }.decide();
    }

    /// Whether nothing fits, because the leaf that recomputes most does not under the lightest shardings. Then
    /// everything is decided.
    fn are_too_large(&mut self, workspace: &mut Workspace<'_>) -> bool {
        let all = &self.recomputations;
        let Some(most) = all.iter().find(|most| all.iter().all(|one| self.is_within(one, most))) else {
            return false;
        };
        for (sharding, overlap) in lightest(&self.rests) {
            // A single refused leaf says nothing about the others, so it decides nothing.
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
        // What earlier shardings have decided carries over by the orders of `dominance`.
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
        // Blocks are bisected only if time grows along their row and memory does not; otherwise each is examined
        // individually.
        if self.recomputation_takes_time() && self.leaves.recomputation_saves_memory() {
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

    /// Whether it belongs to the row in which each leaf recomputes one layer more than the previous, up to all of
    /// them.
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

    /// Marks a leaf as decided; returns whether it was still open.
    fn close(&mut self, place: usize) -> bool {
        self.states
            .get_mut(place)
            .is_some_and(|state| std::mem::replace(state, State::Decided) == State::Open)
    }

    /// Records that `place` is slower than a result, and so is anything that recomputes more under the same sharding.
    fn slower_from(&mut self, place: usize) {
        if self.recomputation_takes_time() {
            if let Some(least) = self.recompute(place).cloned() {
                self.slower_than(&least);
            }
        } else if self.close(place) {
            self.workspace.tally.slower += 1;
        }
    }

    /// Records that anything that recomputes at least as much as `least` is slower than a result.
    fn slower_than(&mut self, least: &Recompute) {
        for place in 0..self.states.len() {
            let within = self.recompute(place).is_some_and(|more| self.leaves.is_within(least, more));
            if within && self.close(place) {
                self.workspace.tally.slower += 1;
            }
        }
    }

    /// Records that anything that recomputes at most as much as `most` is too large, here and under shardings that
    /// are no lighter.
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

    /// The leaf at `place`; none if the software refuses it, which decides it.
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

    /// Decides a leaf by its memory, and whatever follows from that for others.
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
        // A tight leaf beats nothing: one that recomputes more may leave the headroom free.
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
        // Checks the bound again: results found since may beat it by now.
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
