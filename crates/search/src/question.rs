//! The questions that users ask, each answered by searches over a series of plans: other numbers of machines, longer
//! sequences, larger micro-batches. Processed in steps, like a [`Walk`].

use super::dimension::{Choices, Dimension, Values};
use super::other::{self, Other};
use super::outcome::{Outcome, Tally};
use super::space::Space;
use super::walk::{Aim, Walk};
use shardscope_plan::hints::divisors;
use shardscope_plan::{Field, Plan, Variant};

/// What the reader wants to know.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Question {
    /// The fastest layout that fits on these machines.
    Fastest,
    /// Any layout that fits on these machines.
    Fits,
    /// The fewest accelerators of this kind that hold the run.
    FewestGpus,
    /// The number of nodes on which training `tokens` costs least, within `days` if stated, at `price` per
    /// accelerator and hour.
    Cheapest {
        /// Tokens to train on.
        tokens: u64,
        /// The most days that it may take; none for no limit.
        days: Option<f64>,
        /// Price per accelerator and hour.
        price: f64,
        /// The most nodes available.
        most_nodes: u64,
    },
    /// The longest sequence that fits.
    LongestSequence,
    /// The largest micro-batch that fits.
    LargestMicroBatch,
    /// The fastest layout on one node up to `most_nodes`, with the global batch unchanged.
    Scaling {
        /// The largest number of nodes.
        most_nodes: u64,
    },
    /// What one more node brings, or the next number of nodes that divides.
    OneMoreNode,
}

/// One plan of the series and what was found around it.
#[derive(Clone, Debug, PartialEq)]
pub struct Reached {
    /// The size that varies along the series: accelerators, tokens per sequence, or sequences per micro-batch.
    pub size: u64,
    /// Accelerators of this plan.
    pub gpus: u64,
    /// The best layout: the fastest that leaves the headroom free, else the fastest that fits; none if nothing fits.
    pub outcome: Option<Outcome>,
    /// Tokens per second over all accelerators.
    pub tokens_per_second: f64,
    /// Days for the tokens in the question.
    pub days: Option<f64>,
    /// Cost of the tokens in the question, in the price's currency; none if nothing fits or the question has no
    /// price.
    pub cost: Option<f64>,
    /// How the layouts were decided.
    pub tally: Tally,
}

/// A question being answered.
#[derive(Clone, Debug)]
pub struct Inquiry {
    question: Question,
    plan: Plan,
    choices: Choices,
    origin: Variant,
    /// Settings of the reader's plan that were changed beforehand.
    before: Vec<(Field, String)>,
    /// Sizes still to be examined, the next one last.
    left: Vec<u64>,
    walk: Option<(u64, Walk)>,
    reached: Vec<Reached>,
    /// Whether sizes between the last that fails and the first that holds are being narrowed down.
    narrowing: bool,
    listed: usize,
    /// The layouts of the last walk, for lists.
    last: Option<Walk>,
}

/// The most accelerators that a search for the fewest tries.
const MAX_GPUS: u64 = 1 << 15;
/// Longest sequence tried. Unit: token.
const MAX_SEQUENCE: u64 = 1 << 24;
/// Number of parts of a doubling into which the longest sequence is narrowed down.
const PARTS: u64 = 8;

impl Inquiry {
    /// Asks `question` about `plan`, with every dimension varied as `choices` say.
    #[must_use]
    pub fn new(plan: &Plan, question: Question, choices: Choices) -> Self {
        let (cluster, model) = (plan.cluster(), plan.model());
        let (nodes, per_node) = (cluster.num_nodes, cluster.gpus_per_node);
        let mut left = match question {
            Question::Fastest | Question::Fits => vec![cluster.gpus()],
            Question::FewestGpus => {
                let mut sizes = divisors(per_node);
                let mut size = per_node * 2;
                while size <= MAX_GPUS {
                    sizes.push(size);
                    size *= 2;
                }
                sizes
            }
            // Doubled, because every number of nodes would be one search each; the last is the number available.
            Question::Cheapest { most_nodes, .. } | Question::Scaling { most_nodes } => {
                let mut sizes = Vec::new();
                let mut count = 1;
                while count < most_nodes {
                    sizes.push(count * per_node);
                    count *= 2;
                }
                sizes.push(most_nodes.max(1) * per_node);
                sizes
            }
            Question::LongestSequence => {
                let mut sizes = Vec::new();
                let mut size = model.seq_length;
                while size <= MAX_SEQUENCE {
                    sizes.push(size);
                    size *= 2;
                }
                sizes
            }
            Question::LargestMicroBatch => {
                // A micro-batch of packed sequences is one pack.
                let packs = plan.recipe().sample_length.is_some();
                let mut sizes = divisors(if packs { 1 } else { plan.recipe().global_batch_size });
                // The question asks for the largest that fits: the first that does ends it.
                sizes.reverse();
                sizes
            }
            Question::OneMoreNode => (nodes..=nodes * 2).map(|count| count * per_node).collect(),
        };
        left.reverse();
        Self {
            question,
            origin: Variant::from_plan(plan),
            before: Vec::new(),
            plan: plan.clone(),
            choices,
            left,
            walk: None,
            reached: Vec::new(),
            narrowing: false,
            listed: 24,
            last: None,
        }
    }

    /// The same if `before` was already changed in the reader's plan: reported changes include it.
    #[must_use]
    pub fn after(mut self, before: Vec<(Field, String)>) -> Self {
        self.before = before;
        self
    }

    /// Processes up to `count` more items; returns whether there are more.
    pub fn step(&mut self, count: u64) -> bool {
        if self.walk.is_none() && !self.begin() {
            return false;
        }
        if let Some((size, mut walk)) = self.walk.take() {
            if walk.step(count) {
                self.walk = Some((size, walk));
            } else {
                self.finish(size, walk);
            }
        }
        self.walk.is_some() || !self.left.is_empty()
    }

    /// The question.
    #[must_use]
    pub fn question(&self) -> Question {
        self.question
    }

    /// The reader's plan.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// What was reached so far, in the order of examination.
    #[must_use]
    pub fn reached(&self) -> &[Reached] {
        &self.reached
    }

    /// The current walk, or the last one.
    #[must_use]
    pub fn walk(&self) -> Option<&Walk> {
        self.walk.as_ref().map(|(_, walk)| walk).or(self.last.as_ref())
    }

    /// Begins the walk for the next size that has a plan.
    fn begin(&mut self) -> bool {
        while let Some(size) = self.left.pop() {
            let Some(Other { plan, before: more }) = self.at(size) else { continue };
            let before = self.before.iter().cloned().chain(more).collect();
            let mut choices = self.choices.clone();
            if self.question == Question::LargestMicroBatch {
                // `Between`, not `Stated`: the plan's own size may be a different one.
                choices = choices.with(Dimension::MicroBatch, Values::Between(size, size));
            }
            let space = Space::with(&plan, choices).derived_from(&self.origin, before);
            let aim = match self.question {
                Question::Fits
                | Question::FewestGpus
                | Question::LongestSequence
                | Question::LargestMicroBatch => Aim::AnyThatFits,
                _ => Aim::Fastest,
            };
            self.walk = Some((size, Walk::over(space, self.listed).aiming(aim)));
            return true;
        }
        false
    }

    /// The plan of a size.
    fn at(&self, size: u64) -> Option<Other> {
        let per_node = self.plan.cluster().gpus_per_node;
        match self.question {
            Question::LongestSequence if size != self.plan.model().seq_length => {
                other::with_sequences(&self.plan, size)
            }
            Question::Fastest | Question::Fits | Question::LongestSequence | Question::LargestMicroBatch => {
                Some(Other { plan: self.plan.clone(), before: Vec::new() })
            }
            _ if size == self.plan.cluster().gpus() => {
                Some(Other { plan: self.plan.clone(), before: Vec::new() })
            }
            _ if size < per_node => other::on_machines(&self.plan, 1, size),
            _ => other::on_machines(&self.plan, size / per_node, per_node),
        }
    }

    /// Records the result of a walk and determines what remains to be examined.
    fn finish(&mut self, size: u64, walk: Walk) {
        let plan = &walk.space().plan;
        let outcome = walk.ranked().next().cloned();
        let free = outcome.as_ref().is_some_and(|one| !one.tight);
        let tokens = plan.recipe().global_batch_size.saturating_mul(plan.model().seq_length);
        let gpus = plan.layout().world_size;
        let seconds = outcome.as_ref().map(|one| one.step.get());
        let asked = match self.question {
            Question::Cheapest { tokens, price, .. } => Some((tokens, price)),
            _ => None,
        };
        // Whole steps: the last one is paid for even if few tokens are left for it.
        let days = asked.and_then(|(all, _)| {
            seconds.map(|step| real(all.div_ceil(tokens.max(1))) * step / SECONDS_PER_DAY)
        });
        let cost = asked.and_then(|(_, price)| days.map(|days| days * HOURS_PER_DAY * real(gpus) * price));
        let tokens_per_second = seconds.map_or(0.0, |step| real(tokens) / step);
        let tally = walk.tally().clone();
        self.reached.push(Reached { size, gpus, outcome, tokens_per_second, days, cost, tally });
        self.last = Some(walk);
        match self.question {
            Question::FewestGpus if free && !self.narrowing => self.narrow_gpus(size),
            Question::FewestGpus | Question::LargestMicroBatch if free => self.left.clear(),
            // Longer sequences take more memory, so the first that does not fit ends the doubling.
            Question::LongestSequence if !free && !self.narrowing => self.narrow_sequence(size),
            Question::LongestSequence if !free => self.left.clear(),
            Question::OneMoreNode if self.reached.len() == 2 => self.left.clear(),
            _ => {}
        }
    }

    /// Queues the sizes between the last that does not hold the run and `size`, which does: every number of nodes,
    /// fewest first.
    fn narrow_gpus(&mut self, size: u64) {
        self.narrowing = true;
        // Half of `size` was tried before and did not hold the run.
        let per_node = self.plan.cluster().gpus_per_node;
        self.left = (size / 2 + 1..size).filter(|size| size.is_multiple_of(per_node)).collect();
        self.left.reverse();
    }

    /// Queues lengths between the last that fits and `size`, which does not, shortest first.
    fn narrow_sequence(&mut self, size: u64) {
        self.narrowing = true;
        let (fits, step) = (size / 2, size / 2 / PARTS);
        let first = self.plan.model().seq_length;
        self.left.clear();
        // If the first length fails, nothing fits, and there is nothing in between.
        if size > first && step > 0 {
            self.left = (1..PARTS).map(|part| fits + part * step).rev().collect();
        }
    }

    /// The index of the answer among what was reached; none if nothing holds.
    #[must_use]
    pub fn chosen(&self) -> Option<usize> {
        let held = || {
            let all = self.reached.iter().enumerate();
            all.filter(|(_, one)| one.outcome.as_ref().is_some_and(|outcome| !outcome.tight))
        };
        let found = match self.question {
            Question::FewestGpus => held().min_by_key(|(_, one)| one.gpus),
            Question::LongestSequence | Question::LargestMicroBatch => held().max_by_key(|(_, one)| one.size),
            Question::Cheapest { days, .. } => held()
                .filter(|(_, one)| days.is_none_or(|most| one.days.is_some_and(|days| days <= most)))
                .min_by(|(_, one), (_, other)| {
                    let cost = |one: &Reached| one.cost.unwrap_or(f64::INFINITY);
                    cost(one).total_cmp(&cost(other))
                }),
            Question::Scaling { .. } | Question::OneMoreNode => held()
                .max_by(|(_, one), (_, other)| one.tokens_per_second.total_cmp(&other.tokens_per_second)),
            Question::Fits => held().next(),
            Question::Fastest => self.reached.iter().enumerate().find(|(_, one)| one.outcome.is_some()),
        };
        found.map(|(place, _)| place)
    }
}

/// Unit: second.
const SECONDS_PER_DAY: f64 = 86_400.0;
/// Unit: hour.
const HOURS_PER_DAY: f64 = 24.0;

#[allow(clippy::cast_precision_loss)]
fn real(count: u64) -> f64 {
    count as f64
}

impl Question {
    /// The setting that varies along its series around a plan.
    #[must_use]
    pub fn sizes(self, plan: &Plan) -> Field {
        match self {
            Self::LongestSequence => other::length_of(plan),
            Self::LargestMicroBatch => Field::MicroBatchSize,
            _ => Field::WorldSize,
        }
    }
}
