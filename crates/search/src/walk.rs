//! The walk over a space by branch and bound, in steps that can be interrupted and resumed. Deterministic: the same
//! plan gives the same results in the same order, however the steps are divided.
//!
//! A cut (degrees and micro-batch) is bounded by its arithmetic and messages spread evenly over its stages without a
//! bubble, a shape by the least time that its micro-batches can take under any order
//! ([`shardscope_schedule::Shape::least`]), and a leaf by that plus its reductions. Anything whose bound is not below
//! an earlier result is skipped along with everything under it. Since cuts are taken in order of their bounds, few
//! steps have to be simulated.

use super::dimension::Choices;
use super::floor;
use super::known::{Known, fit};
use super::leaves::{Leaves, Workspace};
use super::outcome::{Outcome, Tally};
use super::results::Results;
use super::space::Space;
use shardscope_estimate::Verdict;
use shardscope_estimate::time::{Draft, Sections, exact_step_seconds};
use shardscope_plan::{OffloadModules, Plan, Variant};
use shardscope_source::Code;
use shardscope_units::Seconds;

/// Number of cuts kept, each with its fastest layout.
const KEPT: usize = 24;

/// Kernels surveyed between two looks at a cut, while nothing has been found.
const BETWEEN: usize = 64;

/// Something still to be examined within the current cut.
#[derive(Clone, Debug)]
enum Task {
    /// A shape with a lower bound on its step.
    Shape(Seconds, Box<(Variant, Plan)>),
    /// The undecided leaves of a shape.
    Leaves(Box<Leaves>),
}

/// A cut with a lower bound on its step.
#[derive(Clone, Debug)]
struct Bounded {
    least: Seconds,
    cut: Variant,
}

/// A search in progress.
#[derive(Clone, Debug)]
pub struct Walk {
    space: Space,
    /// Number of kernels surveyed.
    surveyed: usize,
    /// Cuts of the surveyed kernels; sorted by their bounds once all kernels are.
    cuts: Vec<Bounded>,
    /// Number of cuts taken.
    taken: usize,
    /// Number of cuts taken before all kernels were surveyed.
    opened_early: usize,
    /// The remaining tasks of the current cut, the next one last.
    tasks: Vec<Task>,
    /// Results computed for the current cut.
    known: Known,
    tally: Tally,
    results: Results,
    aim: Aim,
}

/// What ends a search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Aim {
    /// Every layout is decided.
    #[default]
    Fastest,
    /// A layout is found that fits with the headroom free.
    AnyThatFits,
}

impl Walk {
    /// The search around `plan`, with everything open that does not change the training's numerics.
    #[must_use]
    pub fn new(plan: &Plan) -> Self {
        Self::over(Space::from_plan(plan), KEPT)
    }

    /// The search with each dimension fixed, ranged or open as `choices` say.
    #[must_use]
    pub fn with(plan: &Plan, choices: Choices) -> Self {
        Self::over(Space::with(plan, choices), KEPT)
    }

    /// The search over `space` for the fastest layouts of at most `listed` cuts.
    #[must_use]
    pub fn over(space: Space, listed: usize) -> Self {
        let mut walk = Self {
            tally: Tally { refused: space.refused.clone(), ..Tally::default() },
            space,
            surveyed: 0,
            cuts: Vec::new(),
            taken: 0,
            opened_early: 0,
            tasks: Vec::new(),
            known: Known::default(),
            results: Results::new(listed),
            aim: Aim::Fastest,
        };
        walk.take_own();
        walk
    }

    /// Takes the plan itself as the first result, if it fits: nothing slower needs to be examined.
    fn take_own(&mut self) {
        let plan = &self.space.plan;
        let (peak, verdict) = fit(plan);
        if !self.space.holds_base() || verdict == Verdict::OutOfMemory {
            return;
        }
        let variant = self.space.base().clone();
        let (step, changes) = (exact_step_seconds(plan), self.space.changes(&variant));
        let own = Outcome { variant, changes, peak, tight: verdict == Verdict::Tight, step };
        self.results.keep(&self.space, own);
    }

    /// Part `index` of `parts` of the same search, for a separate worker: every `parts`th kernel. All parts together
    /// decide what the full search decides, and [`Walk::join`] merges their results.
    #[must_use]
    pub fn part(mut self, index: usize, parts: usize) -> Self {
        self.space.keep_part(index, parts.max(1));
        if index > 0 {
            // Kernels that are impossible are only counted in the first part.
            self.tally = Tally::default();
        }
        self
    }

    /// Merges the results of another part: the lists equal those of the full search once every part has ended.
    pub fn join(&mut self, other: &Self) {
        self.tally.add(&other.tally);
        self.results.join(&other.results);
    }

    /// The same with another aim.
    #[must_use]
    pub fn aiming(mut self, aim: Aim) -> Self {
        self.aim = aim;
        self
    }

    /// Processes up to `count` more items: kernels, cuts, shapes, or recomputations with everything under them.
    /// Returns whether there are more.
    pub fn step(&mut self, count: u64) -> bool {
        for _ in 0..count {
            if self.aim == Aim::AnyThatFits && !self.results.best.is_empty() {
                return false;
            }
            if let Some(task) = self.tasks.pop() {
                self.work(task);
            } else if let Some(kernel) = self.space.kernels().get(self.surveyed).cloned() {
                self.surveyed += 1;
                self.survey(&kernel);
                // While nothing that fits has been found, the fastest cut so far is examined from time to time.
                if self.results.best.is_empty() && self.surveyed.is_multiple_of(BETWEEN) {
                    self.dive();
                }
                if self.surveyed == self.space.kernels().len() {
                    self.cuts.sort_by(|one, other| one.least.get().total_cmp(&other.least.get()));
                }
            } else if let Some(bounded) = self.cuts.get(self.taken).cloned() {
                self.taken += 1;
                self.open(&bounded);
            } else {
                return false;
            }
        }
        self.has_more()
    }

    /// Opens the cut with the least bound of those surveyed so far.
    fn dive(&mut self) {
        let least = |one: &(usize, &Bounded), other: &(usize, &Bounded)| {
            one.1.least.get().total_cmp(&other.1.least.get())
        };
        if let Some((place, _)) = self.cuts.iter().enumerate().min_by(least) {
            let bounded = self.cuts.remove(place);
            self.opened_early += 1;
            self.open(&bounded);
        }
    }

    fn has_more(&self) -> bool {
        !self.tasks.is_empty() || self.surveyed < self.space.kernels().len() || self.taken < self.cuts.len()
    }

    /// The cuts of a kernel, bounded by the work of one micro-batch, which is taken from the first of its plans that
    /// is not refused.
    fn survey(&mut self, kernel: &Variant) {
        let cuts = self.space.cuts(kernel);
        if cuts.is_empty() {
            self.tally.refuse(Code::GlobalBatch, 1);
        }
        let mut measured: Option<Draft> = None;
        for cut in cuts {
            if measured.is_none() {
                // Offloading makes no step shorter, and it lengthens the steps of different cuts by different
                // amounts.
                let here = |shape| Variant { offloaded: OffloadModules::default(), ..shape };
                let shapes = self.space.shapes(&cut).into_iter().map(here);
                let mut plans = shapes.filter_map(|shape| shape.apply(&self.space.plan));
                // A second copy of the model would count twice.
                let plan = plans.find(|plan| plan.layout().copies() == 1);
                measured = plan.map(|plan| Draft::new(&plan, &mut Sections::default()));
            }
            // Micro-batches of one replica: the global batch divided by micro-batch size and replicas.
            let batches = self.space.plan.recipe().global_batch_size
                / (cut.micro_batch_size * self.space.plan.layout().world_size
                    / (cut.tensor * cut.context * cut.pipeline))
                    .max(1);
            // If no plan of the kernel has been valid so far, the cut is examined without a bound.
            let least =
                measured.as_ref().map_or(Seconds::ZERO, |draft| draft.least_over(batches, cut.pipeline));
            self.cuts.push(Bounded { least, cut });
        }
    }

    /// Queues the shapes of a cut, the one with the least bound on top.
    fn open(&mut self, bounded: &Bounded) {
        // Known sections are only valid within a cut.
        self.known = Known::default();
        // It was bounded when it was surveyed; more has been found since.
        if self.results.is_beaten(bounded.least, &bounded.cut) {
            self.tally.slower += self.space.leaves(&bounded.cut);
            return;
        }
        let shapes = self.space.shapes(&bounded.cut);
        if floor::of_cut(&self.space, &shapes, &mut self.known).is_some_and(|floor| floor > 1.0) {
            self.tally.too_large += shapes.iter().map(|shape| self.space.leaves_of_shape(shape)).sum::<u64>();
            return;
        }
        for shape in shapes {
            match shape.checked(&self.space.plan) {
                Ok(plan) => {
                    let least = self.known.draft(&plan).least_before_reduction();
                    self.tasks.push(Task::Shape(least, Box::new((shape, plan))));
                }
                Err(reasons) => {
                    let code = reasons.first().map_or(Code::Size, |reason| reason.code);
                    self.tally.refuse(code, self.space.leaves_of_shape(&shape));
                }
            }
        }
        // The least bound comes last, because the last is taken first.
        let least = |task: &Task| match task {
            Task::Shape(least, _) => least.get(),
            Task::Leaves(_) => 0.0,
        };
        self.tasks.sort_by(|one, other| least(other).total_cmp(&least(one)));
    }

    fn work(&mut self, task: Task) {
        let mut leaves = match task {
            Task::Shape(least, shape) if self.results.is_beaten(least, &shape.0) => {
                self.tally.slower += self.space.leaves_of_shape(&shape.0);
                return;
            }
            Task::Shape(_, shape) => Box::new(Leaves::new(&self.space, shape.0, shape.1)),
            Task::Leaves(leaves) => leaves,
        };
        let mut workspace = Workspace {
            space: &self.space,
            known: &mut self.known,
            tally: &mut self.tally,
            results: &mut self.results,
        };
        leaves.decide_next(&mut workspace);
        if !leaves.are_done() {
            self.tasks.push(Task::Leaves(leaves));
        }
    }

    /// Items examined, and the total as far as it is known: kernels and cuts.
    #[must_use]
    pub fn progress(&self) -> (u64, u64) {
        let open = usize::from(!self.tasks.is_empty());
        let taken = self.taken + self.opened_early;
        let done = self.surveyed + taken - open.min(taken);
        (done as u64, (self.space.kernels().len() + self.cuts.len() + self.opened_early) as u64)
    }

    /// How layouts were decided so far.
    #[must_use]
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Layouts that the software would refuse.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.tally.refused()
    }

    /// Layouts decided so far that do not fit.
    #[must_use]
    pub fn too_large(&self) -> u64 {
        self.tally.too_large
    }

    /// The space walked over.
    #[must_use]
    pub fn space(&self) -> &Space {
        &self.space
    }

    /// The fastest layout of each of the fastest cuts that fit, the fastest first.
    #[must_use]
    pub fn best(&self) -> &[Outcome] {
        &self.results.best
    }

    /// All results in the order of a list: those that leave the headroom free, then those that do not, each fastest
    /// first.
    pub fn ranked(&self) -> impl Iterator<Item = &Outcome> {
        self.results.best.iter().chain(&self.results.tight)
    }

    /// The same for layouts that take part of the headroom, to be listed after the others.
    #[must_use]
    pub fn tight(&self) -> &[Outcome] {
        &self.results.tight
    }

    /// The estimated layouts that no other beats in both time and memory, the fastest first.
    #[must_use]
    pub fn frontier(&self) -> &[Outcome] {
        &self.results.frontier
    }
}
