//! The walk over a space by branch and bound, in steps that can be stopped and taken up again. Deterministic: the same
//! plan gives the same results in the same order, however the steps are cut.
//!
//! A cut (degrees and micro-batch) is bounded by its arithmetic and messages spread evenly over its stages without a bubble,
//! a shape by the least time that its micro-batches can take under any order ([`shardscope_schedule::Shape::least`]), and a
//! leaf by that with its reductions. What is not below what was found already is left out with all that is under it. Since
//! cuts are taken by their bounds, the fastest first, few steps are run through.

use super::dimension::Choices;
use super::floor::{self, Floor};
use super::outcome::{Outcome, Tally};
use super::space::Space;
use shardscope_estimate::time::{Draft, Sections, time};
use shardscope_estimate::{Verdict, memory_totals, time_fault};
use shardscope_plan::{DpSharding, Plan, Recompute, Variant};
use shardscope_source::Code;
use shardscope_units::{Bytes, Seconds};

/// Cuts kept, each with its fastest layout.
const KEPT: usize = 24;

/// Where weights, gradients and states fill so much of the device on an even stage, the fullest stage is looked at, too.
const NEAR: f64 = 0.6;

/// Something to be looked at.
#[derive(Clone, Debug)]
enum Task {
    /// A shape with the least that a step of it takes.
    Shape(Seconds, Variant),
    /// What is left to recompute of a shape, the next one last, and what of it was too slow.
    Recomputations(Box<Recomputations>),
}

#[derive(Clone, Debug)]
struct Recomputations {
    plan: Plan,
    shape: Variant,
    left: Vec<Recompute>,
    beaten: Vec<Recompute>,
}

/// A cut with the least that a step of it takes.
#[derive(Clone, Debug)]
struct Bounded {
    least: Seconds,
    cut: Variant,
}

/// A search under way.
#[derive(Clone, Debug)]
pub struct Walk {
    space: Space,
    kept: usize,
    /// Kernels surveyed.
    surveyed: usize,
    /// Cuts of the kernels surveyed; sorted by their bounds once all are.
    cuts: Vec<Bounded>,
    /// Cuts taken.
    taken: usize,
    /// What is left of the cut in hand, the next one last.
    tasks: Vec<Task>,
    /// The passes over sections of the cut in hand, by what was recomputed.
    known: Vec<(Recompute, Sections)>,
    tally: Tally,
    best: Vec<Outcome>,
    tight: Vec<Outcome>,
    frontier: Vec<Outcome>,
    aim: Aim,
}

/// What ends a search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Aim {
    /// Every layout decided.
    #[default]
    Fastest,
    /// A layout found that fits with the headroom free.
    AnyThatFits,
}

impl Walk {
    /// The search around `plan`, everything open that changes no number of the training.
    #[must_use]
    pub fn new(plan: &Plan) -> Self {
        Self::over(Space::of(plan), KEPT)
    }

    /// The search with each dimension fixed, ranged or open as `choices` say.
    #[must_use]
    pub fn with(plan: &Plan, choices: Choices) -> Self {
        Self::over(Space::with(plan, choices), KEPT)
    }

    /// The search over `space` for the fastest layouts of at most `kept` cuts.
    #[must_use]
    pub fn over(space: Space, kept: usize) -> Self {
        let mut walk = Self {
            tally: Tally { refused: space.refused.clone(), ..Tally::default() },
            space,
            kept: kept.max(1),
            surveyed: 0,
            cuts: Vec::new(),
            taken: 0,
            tasks: Vec::new(),
            known: Vec::new(),
            best: Vec::new(),
            tight: Vec::new(),
            frontier: Vec::new(),
            aim: Aim::Fastest,
        };
        // The plan itself is the first answer: nothing slower is worth a look where it fits.
        if walk.space.holds_base() {
            let (own, plan) = (walk.space.base().clone(), walk.space.plan.clone());
            walk.leaf(&own, &plan);
            walk.tally = Tally { refused: walk.tally.refused, ..Tally::default() };
            walk.known.clear();
        }
        walk
    }

    /// The same with another end.
    #[must_use]
    pub fn aiming(mut self, aim: Aim) -> Self {
        self.aim = aim;
        self
    }

    /// Looks at up to `count` more things: kernels, cuts, shapes, or recomputations with all that is under them. Whether
    /// there are more.
    pub fn step(&mut self, count: u64) -> bool {
        for _ in 0..count {
            if self.aim == Aim::AnyThatFits && !self.best.is_empty() {
                return false;
            }
            if let Some(task) = self.tasks.pop() {
                self.work(task);
            } else if let Some(kernel) = self.space.kernels().get(self.surveyed).cloned() {
                self.surveyed += 1;
                self.survey(&kernel);
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

    fn has_more(&self) -> bool {
        !self.tasks.is_empty() || self.surveyed < self.space.kernels().len() || self.taken < self.cuts.len()
    }

    /// The cuts of a kernel, bounded by the work of one micro-batch: that of the first of its plans that is not refused.
    fn survey(&mut self, kernel: &Variant) {
        let cuts = self.space.cuts(kernel);
        if cuts.is_empty() {
            self.tally.refuse(Code::GlobalBatch, 1);
        }
        let mut measured: Option<Draft> = None;
        for cut in cuts {
            if measured.is_none() {
                let mut plans =
                    self.space.shapes(&cut).into_iter().filter_map(|shape| shape.apply(&self.space.plan));
                // A second copy of the model would count twice.
                let plan = plans.find(|plan| plan.layout().copies() == 1);
                measured = plan.map(|plan| Draft::of(&plan, &mut Sections::default()));
            }
            let batches = self.space.plan.recipe().global_batch_size
                / (cut.micro_batch_size * self.space.plan.layout().world_size
                    / (cut.tensor * cut.context * cut.pipeline))
                    .max(1);
            // Where no plan of the kernel has come up so far, the cut is looked at without a bound.
            let least =
                measured.as_ref().map_or(Seconds::ZERO, |draft| draft.least_over(batches, cut.pipeline));
            self.cuts.push(Bounded { least, cut });
        }
    }

    /// The shapes of a cut, the one with the least bound on top.
    fn open(&mut self, bounded: &Bounded) {
        self.known.clear();
        if self.is_beaten(bounded.least, &bounded.cut) {
            self.tally.slower += self.space.leaves(&bounded.cut);
            return;
        }
        let shapes = self.space.shapes(&bounded.cut);
        let floor = floor::of_cut(&self.space, &shapes).unwrap_or(0.0);
        if floor > 1.0 {
            self.tally.too_large += shapes.iter().map(|shape| self.space.leaves_of_shape(shape)).sum::<u64>();
            return;
        }
        for shape in shapes {
            match shape.checked(&self.space.plan) {
                Ok(plan) if floor > NEAR && floor::of_shape(&self.space, &plan, &shape) == Floor::Above => {
                    self.tally.too_large += self.space.leaves_of_shape(&shape);
                }
                Ok(plan) => {
                    let least = self.draft(&plan).least_before_reduction();
                    self.tasks.push(Task::Shape(least, shape));
                }
                Err(reasons) => {
                    let code = reasons.first().map_or(Code::Size, |reason| reason.code);
                    self.tally.refuse(code, self.space.leaves_of_shape(&shape));
                }
            }
        }
        // The least bound comes last, where it is taken first.
        let least = |task: &Task| match task {
            Task::Shape(least, _) => least.get(),
            Task::Recomputations(_) => 0.0,
        };
        self.tasks.sort_by(|one, other| least(other).total_cmp(&least(one)));
    }

    fn work(&mut self, task: Task) {
        match task {
            Task::Shape(least, shape) => {
                if self.is_beaten(least, &shape) {
                    self.tally.slower += self.space.leaves_of_shape(&shape);
                    return;
                }
                let Some(plan) = shape.apply(&self.space.plan) else { return };
                let mut left = self.space.recomputations(&shape);
                left.reverse();
                let beaten = Vec::new();
                self.tasks.push(Task::Recomputations(Box::new(Recomputations { plan, shape, left, beaten })));
            }
            Task::Recomputations(mut task) => {
                let Some(recompute) = task.left.pop() else { return };
                self.recomputation(&mut task, recompute);
                if !task.left.is_empty() {
                    self.tasks.push(Task::Recomputations(task));
                }
            }
        }
    }

    /// The leaves of a shape that recompute the same. One that recomputes more than another takes no less time, whatever it
    /// is run under.
    fn recomputation(&mut self, task: &mut Recomputations, recompute: Recompute) {
        let rests = self.space.rests(&task.shape);
        let count = rests.len() as u64;
        if task.beaten.iter().any(|less| is_within(less, &recompute)) {
            self.tally.slower += count;
            return;
        }
        let mut bounded = false;
        for (place, (sharding, overlap)) in (0..).zip(rests) {
            let variant = Variant { recompute: recompute.clone(), sharding, overlap, ..task.shape.clone() };
            let plan = match variant.retuned(&task.plan) {
                Ok(plan) => plan,
                Err(reasons) => {
                    self.tally.refuse(reasons.first().map_or(Code::Size, |reason| reason.code), 1);
                    continue;
                }
            };
            if !bounded && sharding != DpSharding::Parameters {
                bounded = true;
                let least = self.draft(&plan).least_before_reduction();
                if self.is_beaten(least, &variant) {
                    task.beaten.push(recompute);
                    self.tally.slower += count - place;
                    return;
                }
            }
            self.leaf(&variant, &plan);
        }
    }

    /// One layout: slower for sure, too large, or worked out.
    fn leaf(&mut self, variant: &Variant, plan: &Plan) {
        let (peak, verdict) = fit(plan);
        if verdict == Verdict::OutOfMemory {
            self.tally.too_large += 1;
            return;
        }
        let draft = self.draft(plan);
        let least = draft.least();
        let of_cut = self.tight.iter().any(|one| one.is_of_cut(variant) && one.step <= least);
        if self.is_beaten(least, variant) || verdict == Verdict::Tight && of_cut {
            self.tally.slower += 1;
            return;
        }
        self.tally.estimated += 1;
        let step = draft.exact();
        let changes = self.space.changes(variant);
        let tight = verdict == Verdict::Tight;
        self.keep(Outcome { variant: variant.clone(), changes, peak, tight, step });
    }

    /// The step of `plan`, the passes over its sections taken from those known for the cut in hand.
    fn draft(&mut self, plan: &Plan) -> Draft {
        let recompute = &plan.recipe().recompute;
        // Whole layers that are recomputed change no section.
        let by_section =
            if matches!(recompute, Recompute::Selective(_)) { recompute } else { &Recompute::None };
        let place = self.known.iter().position(|(known, _)| known == by_section);
        let place = place.unwrap_or_else(|| {
            self.known.push((by_section.clone(), Sections::default()));
            self.known.len() - 1
        });
        match self.known.get_mut(place) {
            Some((_, sections)) => Draft::of(plan, sections),
            None => Draft::of(plan, &mut Sections::default()),
        }
    }

    /// Whether a step of `least` at least is no faster than what a layout of the same cut as `variant` must be faster than to be
    /// kept: the cut's own best, and the last that is kept.
    fn is_beaten(&self, least: Seconds, variant: &Variant) -> bool {
        let of_cut = self.best.iter().find(|one| one.is_of_cut(variant));
        let last = self.best.last().filter(|_| self.best.len() >= self.kept);
        of_cut.into_iter().chain(last).any(|one| least >= one.step)
    }

    fn keep(&mut self, outcome: Outcome) {
        // What no machine could do is no result.
        let fault = outcome.variant.apply(&self.space.plan).and_then(|plan| time_fault(&time(&plan)));
        if fault.is_some() {
            self.tally.faults += 1;
            self.tally.estimated -= 1;
            return;
        }
        insert(if outcome.tight { &mut self.tight } else { &mut self.best }, &outcome, self.kept);
        let beaten = |one: &Outcome| one.step <= outcome.step && one.peak <= outcome.peak;
        if !self.frontier.iter().any(beaten) {
            self.frontier.retain(|one| !(outcome.step <= one.step && outcome.peak <= one.peak));
            let place = self.frontier.partition_point(|one| one.step < outcome.step);
            self.frontier.insert(place, outcome);
        }
    }

    /// Things looked at and all there are so far as is known: kernels and cuts.
    #[must_use]
    pub fn progress(&self) -> (u64, u64) {
        let open = usize::from(!self.tasks.is_empty());
        let done = self.surveyed + self.taken - open.min(self.taken);
        (done as u64, (self.space.kernels().len() + self.cuts.len()) as u64)
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

    /// Layouts that do not fit.
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
        &self.best
    }

    /// All results as a list shows them: those that leave the headroom free, then those that do not, each the fastest first.
    pub fn ranked(&self) -> impl Iterator<Item = &Outcome> {
        self.best.iter().chain(&self.tight)
    }

    /// The same of those that take some of the headroom: to be shown behind the others.
    #[must_use]
    pub fn tight(&self) -> &[Outcome] {
        &self.tight
    }

    /// Of the layouts worked out those that no other beats in both time and memory, the fastest first.
    #[must_use]
    pub fn frontier(&self) -> &[Outcome] {
        &self.frontier
    }
}

/// Puts `outcome` where it belongs, one for each cut and `kept` at most.
fn insert(list: &mut Vec<Outcome>, outcome: &Outcome, kept: usize) {
    if let Some(place) = list.iter().position(|one| one.is_of_cut(&outcome.variant)) {
        let rank = list.get(place).map(Outcome::rank);
        if rank.is_some_and(|rank| rank <= outcome.rank()) {
            return;
        }
        list.remove(place);
    }
    let place = list.partition_point(|one| one.rank() <= outcome.rank());
    list.insert(place, outcome.clone());
    list.truncate(kept);
}

/// The fullest device's peak, and the gravest verdict.
pub(crate) fn fit(plan: &Plan) -> (Bytes, Verdict) {
    let (capacity, headroom) = (plan.cluster().accelerator.memory, plan.recipe().headroom);
    let totals = memory_totals(plan);
    let peak = totals.iter().map(|totals| totals.peak_reserved).max().unwrap_or_default();
    let verdict = totals.iter().map(|totals| totals.verdict(capacity, headroom)).max();
    (peak, verdict.unwrap_or(Verdict::Fits))
}

/// Whether all that `less` recomputes is recomputed by `more` too.
fn is_within(less: &Recompute, more: &Recompute) -> bool {
    match (less, more) {
        (Recompute::None, _) => true,
        (Recompute::Selective(some), Recompute::Selective(all)) => {
            some.iter().all(|module| all.contains(module))
        }
        (Recompute::Block { num_layers: some, .. }, Recompute::Block { num_layers: all, .. }) => some <= all,
        (Recompute::Block { .. }, Recompute::Uniform { .. }) => true,
        _ => false,
    }
}
