//! Collects operations, each with how often every stage's ranks take part.

use super::ledger::{DimensionTraffic, Operation, Parallelism, Place, Totals, Traffic};
use shardscope_explain::Formula;
use shardscope_operators::{Collective, Dimension, Message, SectionKind, Shape, Symbols};
use shardscope_plan::{PipelineSchedule, Plan};
use shardscope_topology::{GroupKind, Groups, Link};
use shardscope_units::product;

/// A builder for the ledger.
pub(super) struct Builder<'a> {
    pub(super) symbols: Symbols<'a>,
    pub(super) groups: Groups,
    operations: Vec<(Parallelism, Operation)>,
    links: Vec<(GroupKind, Link)>,
}

/// Calls by stage.
#[derive(Clone, Debug, Default)]
pub(super) struct Calls {
    pub(super) per_micro_batch: Vec<u64>,
    pub(super) per_iteration: Vec<u64>,
}

/// What one call carries.
#[derive(Clone)]
pub(super) struct Sent {
    pub(super) name: &'static str,
    pub(super) tensor: &'static str,
    pub(super) collective: Collective,
    pub(super) place: Place,
    pub(super) shape: Shape,
    pub(super) width: u64,
    pub(super) dtype: &'static str,
    pub(super) overlapped: bool,
    pub(super) formula: &'static Formula,
}

impl<'a> Builder<'a> {
    pub(super) fn new(plan: &'a Plan) -> Self {
        Self {
            symbols: Symbols::new(plan),
            groups: Groups::new(plan.layout()),
            operations: Vec::with_capacity(48),
            links: Vec::with_capacity(8),
        }
    }

    pub(super) fn plan(&self) -> &'a Plan {
        self.symbols.plan
    }

    /// Number of pipeline stages.
    pub(super) fn stages(&self) -> usize {
        self.plan().layout().stages.stages.len()
    }

    /// Micro-batches that go through `chunk`: all of them, or half in each direction of `DualPipe`.
    pub(super) fn micro_batches(&self, chunk: usize) -> u64 {
        let all = self.plan().recipe().num_micro_batches;
        match (self.plan().layout().schedule, chunk) {
            // Each rank holds a part of the model for either direction; chunk 0 handles the micro-batches that enter
            // at the first stage.
            (PipelineSchedule::DualPipe, 0) => all.div_ceil(2),
            (PipelineSchedule::DualPipe, _) => all / 2,
            _ => all,
        }
    }

    /// Calls that each chunk makes for each of its micro-batches.
    pub(super) fn chunk_calls(&self, calls: &dyn Fn(usize, usize) -> u64) -> Calls {
        let mut out = Calls::default();
        for (stage, held) in self.plan().layout().stages.stages.iter().enumerate() {
            let (mut each, mut all) = (0_u64, 0_u64);
            for chunk in 0..held.chunks.len() {
                let calls = calls(stage, chunk);
                each = each.saturating_add(calls);
                all = all.saturating_add(product(calls, self.micro_batches(chunk)));
            }
            out.per_micro_batch.push(each);
            out.per_iteration.push(all);
        }
        out
    }

    /// Calls that each stage makes once per iteration.
    pub(super) fn step_calls(&self, calls: &dyn Fn(usize) -> u64) -> Calls {
        let stages = self.stages();
        Calls { per_micro_batch: vec![0; stages], per_iteration: (0..stages).map(calls).collect() }
    }

    /// Adds an operator's message.
    pub(super) fn message(&mut self, section: SectionKind, message: &Message, calls: Calls) {
        let sent = Sent {
            name: message.name,
            tensor: message.tensor,
            collective: message.collective,
            place: Place::In(section, message.pass),
            shape: message.shape,
            width: message.width,
            dtype: message.dtype,
            overlapped: message.overlapped,
            formula: message.formula,
        };
        self.add(parallelism(message.dimension), group_kind(message.dimension), sent, calls);
    }

    /// Adds an operation, merging equal ones.
    pub(super) fn add(&mut self, parallelism: Parallelism, group: GroupKind, sent: Sent, calls: Calls) {
        let ranks = self.groups.size(group);
        // A group of one sends nothing; frameworks skip the call, and a row of zeros would only confuse.
        if ranks <= 1 || calls.per_iteration.iter().all(|calls| *calls == 0) {
            return;
        }
        let operation = Operation {
            name: sent.name,
            tensor: sent.tensor,
            collective: sent.collective,
            place: sent.place,
            group,
            ranks,
            link: self.link(group),
            shape: sent.shape,
            width: sent.width,
            dtype: sent.dtype,
            overlapped: sent.overlapped,
            formula: sent.formula,
            per_micro_batch: calls.per_micro_batch,
            per_iteration: calls.per_iteration,
        };
        let same =
            |other: &&mut (Parallelism, Operation)| other.0 == parallelism && other.1.is_like(&operation);
        match self.operations.iter_mut().find(same) {
            Some((_, other)) => other.take(&operation),
            None => self.operations.push((parallelism, operation)),
        }
    }

    fn link(&mut self, group: GroupKind) -> Link {
        if let Some((_, link)) = self.links.iter().find(|(kind, _)| *kind == group) {
            return *link;
        }
        let cluster = self.plan().cluster();
        let link = self.groups.link(group, cluster);
        self.links.push((group, link));
        link
    }

    /// The finished ledger.
    pub(super) fn finish(mut self) -> Traffic {
        let stages = self.stages().max(1);
        let ranks_per_stage = self.groups.world() / self.groups.size(GroupKind::Pipeline).max(1);
        let operations = std::mem::take(&mut self.operations);
        let mut dimensions = Vec::new();
        for &parallelism in &Parallelism::ALL {
            let mut own: Vec<Operation> = Vec::new();
            for (other, operation) in &operations {
                if *other == parallelism {
                    own.push(operation.clone());
                }
            }
            if own.is_empty() {
                continue;
            }
            let group = named_after(parallelism, &own);
            let dimension = DimensionTraffic {
                parallelism,
                group,
                groups: self.groups.count(group),
                group_size: self.groups.size(group),
                link: self.link(group),
                operations: own,
                stages: vec![Totals::default(); stages],
                cluster: Totals::default(),
            };
            dimensions.push(dimension.add_up(ranks_per_stage));
        }
        Traffic { dimensions }
    }
}

impl Operation {
    /// Whether `other` is the same kind of call, on whatever stage.
    fn is_like(&self, other: &Self) -> bool {
        // Comparing text would not suffice: two operators may write the same formula for different tensors.
        std::ptr::eq(self.formula, other.formula)
            && self.name == other.name
            && self.place == other.place
            && self.shape == other.shape
            && self.group == other.group
            && (self.width, self.dtype, self.overlapped) == (other.width, other.dtype, other.overlapped)
    }

    fn take(&mut self, other: &Self) {
        let add = |mine: &mut Vec<u64>, more: &[u64]| {
            for (mine, more) in mine.iter_mut().zip(more) {
                *mine = mine.saturating_add(*more);
            }
        };
        add(&mut self.per_micro_batch, &other.per_micro_batch);
        add(&mut self.per_iteration, &other.per_iteration);
    }
}

/// The group that a dimension is named after; for experts, the one with the most traffic.
fn named_after(parallelism: Parallelism, operations: &[Operation]) -> GroupKind {
    match parallelism {
        Parallelism::Tensor => GroupKind::Tensor,
        Parallelism::Pipeline => GroupKind::Pipeline,
        Parallelism::Data => operations.first().map_or(GroupKind::DataContext, |first| first.group),
        Parallelism::Context => GroupKind::Context,
        Parallelism::Expert => operations
            .iter()
            .max_by_key(|operation| operation.bytes())
            .map_or(GroupKind::Expert, |most| most.group),
        Parallelism::Embedding => GroupKind::Embedding,
        Parallelism::Scalars => operations.first().map_or(GroupKind::Model, |first| first.group),
    }
}

/// The groups of an operator's message.
fn group_kind(dimension: Dimension) -> GroupKind {
    match dimension {
        Dimension::Tensor => GroupKind::Tensor,
        Dimension::Pipeline => GroupKind::Pipeline,
        Dimension::Data => GroupKind::DataContext,
        Dimension::Context => GroupKind::Context,
        Dimension::ContextInner => GroupKind::ContextLevel(0),
        Dimension::ContextOuter => GroupKind::ContextLevel(1),
        Dimension::Expert => GroupKind::Expert,
        Dimension::ExpertTensor => GroupKind::ExpertTensor,
        Dimension::TensorExpert => GroupKind::TensorExpert,
        Dimension::ExpertData => GroupKind::ExpertData,
        Dimension::Embedding => GroupKind::Embedding,
    }
}

/// The ledger's dimension of an operator's message.
fn parallelism(dimension: Dimension) -> Parallelism {
    match dimension {
        Dimension::Tensor => Parallelism::Tensor,
        Dimension::Pipeline => Parallelism::Pipeline,
        Dimension::Data | Dimension::ExpertData => Parallelism::Data,
        Dimension::Context | Dimension::ContextInner | Dimension::ContextOuter => Parallelism::Context,
        Dimension::Expert | Dimension::ExpertTensor | Dimension::TensorExpert => Parallelism::Expert,
        Dimension::Embedding => Parallelism::Embedding,
    }
}
