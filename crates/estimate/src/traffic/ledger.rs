//! The ledger: every kind of message with its size and how often each stage's ranks take part in it.

use crate::collective::{Algorithm, wire_bytes};
use shardscope_explain::{Explanation, Formula, Symbol};
use shardscope_operators::{Collective, Pass, SectionKind, Shape, Symbols};
use shardscope_topology::{GroupKind, Link};
use shardscope_units::{Bytes, Count, Quantity, product};

/// The parallel dimension that a message belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Parallelism {
    /// Tensor parallel, with sequence parallelism.
    Tensor,
    /// Between pipeline stages.
    Pipeline,
    /// Gradients and weights of replicas.
    Data,
    /// Between the ranks that share a sequence.
    Context,
    /// Between the ranks that share experts.
    Expert,
    /// Tied embeddings of first and last stage.
    Embedding,
    /// Numbers and counts: gradient norm, overflow, loss, tokens of each expert.
    Scalars,
}

impl Parallelism {
    /// All dimensions, in the report's order.
    pub const ALL: [Self; 7] = [
        Self::Tensor,
        Self::Pipeline,
        Self::Data,
        Self::Context,
        Self::Expert,
        Self::Embedding,
        Self::Scalars,
    ];

    /// The name in the report.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tensor => "tensor",
            Self::Pipeline => "pipeline",
            Self::Data => "data",
            Self::Context => "context",
            Self::Expert => "expert",
            Self::Embedding => "embedding",
            Self::Scalars => "scalars",
        }
    }
}

/// The place in a step where a message is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// In a section of the model.
    In(SectionKind, Pass),
    /// Between two stages.
    BetweenStages(Pass),
    /// Before a section whose weights are sharded.
    AheadOf(SectionKind, Pass),
    /// After the backward pass of every micro-batch.
    AfterEachBackward,
    /// After the backward pass of the last micro-batch.
    AfterLastBackward,
    /// After the optimizer step.
    AfterOptimizerStep,
}

impl Place {
    /// In words.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::In(section, pass) => section.in_pass(pass),
            Self::BetweenStages(Pass::Forward) => "between stages, forward",
            Self::BetweenStages(Pass::Backward) => "between stages, backward",
            Self::AheadOf(_, Pass::Forward) => "ahead of each unit, forward",
            Self::AheadOf(_, Pass::Backward) => "ahead of each unit, backward",
            Self::AfterEachBackward => "after the backward pass of every micro-batch",
            Self::AfterLastBackward => "after the backward pass of the last micro-batch",
            Self::AfterOptimizerStep => "after the optimizer step",
        }
    }
}

/// One kind of message.
#[derive(Clone, Debug, PartialEq)]
pub struct Operation {
    /// The layer or buffer it belongs to.
    pub name: &'static str,
    /// Tensor that is sent.
    pub tensor: &'static str,
    /// Collective operation.
    pub collective: Collective,
    /// The place in the step.
    pub place: Place,
    /// The groups that take part.
    pub group: GroupKind,
    /// Ranks of one group.
    pub ranks: u64,
    /// The slowest link that any of these groups crosses.
    pub link: Link,
    /// Shape of the message.
    pub shape: Shape,
    /// Bytes of one element.
    pub width: u64,
    /// Number format.
    pub dtype: &'static str,
    /// Whether compute can hide it under this plan.
    pub overlapped: bool,
    /// Its size and why it is sent.
    pub formula: &'static Formula,
    /// By stage, how often a rank takes part for one micro-batch (for a send, only as the sender).
    pub per_micro_batch: Vec<u64>,
    /// By stage, how often per iteration.
    pub per_iteration: Vec<u64>,
}

impl Operation {
    /// Bytes of one message.
    #[must_use]
    pub fn bytes(&self) -> Bytes {
        Count::of_shape(&self.shape).bytes(self.width)
    }

    /// Explains the size of a message: its formula with the values of the symbols under the plan of `x`.
    #[must_use]
    pub fn explain(&self, x: &Symbols<'_>) -> Explanation {
        let mut why = x.explain(self.formula);
        if self.formula.names().contains(&"elements") {
            let value = Count::of_shape(&self.shape).number();
            why.symbols.insert(0, Symbol { name: "elements", value, of_plan: false });
        }
        why
    }

    /// Bytes that one rank sends for it under `algorithm`, on average.
    #[must_use]
    pub fn wire(&self, algorithm: Algorithm) -> Bytes {
        wire_bytes(algorithm, self.collective, self.ranks, self.bytes())
    }

    /// Calls of a rank of `stage` in one iteration.
    #[must_use]
    pub fn calls(&self, stage: usize) -> u64 {
        self.per_iteration.get(stage).copied().unwrap_or(0)
    }

    /// The most calls any stage's ranks make in one iteration.
    #[must_use]
    pub fn most_calls(&self) -> u64 {
        self.per_iteration.iter().copied().max().unwrap_or(0)
    }

    /// The most calls any stage's ranks make for one micro-batch; 0 for once-per-step messages.
    #[must_use]
    pub fn most_calls_per_micro_batch(&self) -> u64 {
        self.per_micro_batch.iter().copied().max().unwrap_or(0)
    }
}

/// Calls and bytes of one iteration. A send counts at the sender, a collective at every member.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Calls.
    pub calls: u64,
    /// Size of the messages, multiplied by their calls.
    pub bytes: Bytes,
    /// What ranks send for them by the ring algorithm.
    pub wire: Bytes,
    /// The part of `wire` in groups that cross the network.
    pub network: Bytes,
}

impl Totals {
    fn add(&mut self, operation: &Operation, calls: u64) {
        self.calls = self.calls.saturating_add(calls);
        self.bytes += operation.bytes() * calls;
        let wire = operation.wire(Algorithm::Ring) * calls;
        self.wire += wire;
        // The slowest group's link represents all groups of its kind: a step waits for that group.
        if operation.link == Link::Network {
            self.network += wire;
        }
    }

    /// The totals of `times` such ranks.
    #[must_use]
    pub fn times(self, times: u64) -> Self {
        Self {
            calls: product(self.calls, times),
            bytes: self.bytes * times,
            wire: self.wire * times,
            network: self.network * times,
        }
    }
}

impl std::ops::Add for Totals {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self {
            calls: self.calls.saturating_add(other.calls),
            bytes: self.bytes + other.bytes,
            wire: self.wire + other.wire,
            network: self.network + other.network,
        }
    }
}

impl std::iter::Sum for Totals {
    fn sum<I: Iterator<Item = Self>>(items: I) -> Self {
        let mut sum = Self::default();
        for item in items {
            sum = sum + item;
        }
        sum
    }
}

/// Everything sent for one parallel dimension.
#[derive(Clone, Debug, PartialEq)]
pub struct DimensionTraffic {
    /// The dimension.
    pub parallelism: Parallelism,
    /// The group that it is named after.
    pub group: GroupKind,
    /// Number of such groups.
    pub groups: u64,
    /// Their members.
    pub group_size: u64,
    /// The slowest link they cross.
    pub link: Link,
    /// Messages.
    pub operations: Vec<Operation>,
    /// Totals of one rank, by stage.
    pub stages: Vec<Totals>,
    /// Totals of all ranks.
    pub cluster: Totals,
}

impl DimensionTraffic {
    /// Sums `operations`; every stage has `ranks_per_stage` ranks.
    pub(super) fn add_up(mut self, ranks_per_stage: u64) -> Self {
        for (index, stage) in self.stages.iter_mut().enumerate() {
            *stage = Totals::default();
            for operation in &self.operations {
                stage.add(operation, operation.calls(index));
            }
        }
        self.cluster = self.stages.iter().map(|stage| stage.times(ranks_per_stage)).sum();
        self
    }

    /// The stage whose ranks send the most; the first of several.
    #[must_use]
    pub fn busiest(&self) -> usize {
        let most = self.stages.iter().map(|stage| stage.bytes).max().unwrap_or_default();
        self.stages.iter().position(|stage| stage.bytes == most).unwrap_or(0)
    }

    /// Totals of a rank of the busiest stage.
    #[must_use]
    pub fn per_gpu(&self) -> Totals {
        self.stages.get(self.busiest()).copied().unwrap_or_default()
    }
}

/// The complete ledger.
#[derive(Clone, Debug, PartialEq)]
pub struct Traffic {
    /// The dimensions that send anything, in the report's order.
    pub dimensions: Vec<DimensionTraffic>,
}

impl Traffic {
    /// The ledger of one dimension, if it sends anything.
    #[must_use]
    pub fn dimension(&self, parallelism: Parallelism) -> Option<&DimensionTraffic> {
        self.dimensions.iter().find(|dimension| dimension.parallelism == parallelism)
    }

    /// Totals of all ranks and dimensions.
    #[must_use]
    pub fn cluster(&self) -> Totals {
        self.dimensions.iter().map(|dimension| dimension.cluster).sum()
    }

    /// Totals of one rank over all dimensions, by stage.
    #[must_use]
    pub fn stages(&self) -> Vec<Totals> {
        let count = self.dimensions.first().map_or(0, |dimension| dimension.stages.len());
        let mut stages = vec![Totals::default(); count];
        for dimension in &self.dimensions {
            for (sum, more) in stages.iter_mut().zip(&dimension.stages) {
                *sum = *sum + *more;
            }
        }
        stages
    }
}
