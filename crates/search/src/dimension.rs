//! What a search varies, and how far the reader allows it.

/// A dimension that a search varies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Dimension {
    /// Tensor parallel size.
    Tensor,
    /// Pipeline parallel size.
    Pipeline,
    /// Model chunks per rank.
    VirtualPipeline,
    /// How layers are distributed over the stages.
    Split,
    /// Order of micro-batches on a stage.
    Schedule,
    /// Context parallel size.
    Context,
    /// Expert parallel size.
    Expert,
    /// Expert tensor parallel size.
    ExpertTensor,
    /// Sequences per micro-batch.
    MicroBatch,
    /// Sequence parallelism.
    SequenceParallel,
    /// What data-parallel replicas shard.
    Sharding,
    /// What is recomputed.
    Recompute,
    /// Which communication hides behind compute.
    Overlap,
    /// Order in which ranks are numbered.
    RankOrder,
    /// Products in 8 or 4 bits, and how their values are scaled.
    Precision,
    /// Whether optimizer states stay on the host.
    Offload,
    /// Modules of a layer whose saved tensors are kept on the host.
    OffloadModules,
    /// Groups of replicas that each hold a full set of shards: partial sharding, HSDP.
    Instances,
}

impl Dimension {
    /// Every dimension with its name for readers and command lines.
    pub const NAMED: [(Self, &'static str); 18] = [
        (Self::Tensor, "tp"),
        (Self::Pipeline, "pp"),
        (Self::VirtualPipeline, "vpp"),
        (Self::Split, "split"),
        (Self::Schedule, "schedule"),
        (Self::Context, "cp"),
        (Self::Expert, "ep"),
        (Self::ExpertTensor, "etp"),
        (Self::MicroBatch, "mbs"),
        (Self::SequenceParallel, "sp"),
        (Self::Sharding, "sharding"),
        (Self::Recompute, "recompute"),
        (Self::Overlap, "overlap"),
        (Self::RankOrder, "rank-order"),
        (Self::Precision, "precision"),
        (Self::Offload, "offload"),
        (Self::OffloadModules, "offload-modules"),
        (Self::Instances, "instances"),
    ];

    /// The name.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::NAMED.iter().find(|(one, _)| *one == self).map_or("", |(_, name)| name)
    }

    /// The dimension called `name`, if any.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::NAMED.iter().find(|(_, known)| *known == name).map(|(one, _)| *one)
    }

    /// A description, for lists that readers see.
    #[must_use]
    pub const fn about(self) -> &'static str {
        match self {
            Self::Tensor => "Tensor parallel (TP)",
            Self::Pipeline => "Pipeline parallel (PP)",
            Self::VirtualPipeline => "Chunks per rank (VPP)",
            Self::Split => "Layers per stage",
            Self::Schedule => "Pipeline schedule",
            Self::Context => "Context parallel (CP)",
            Self::Expert => "Expert parallel (EP)",
            Self::ExpertTensor => "Expert tensor parallel (ETP)",
            Self::MicroBatch => "Micro-batch (MBS)",
            Self::SequenceParallel => "Sequence parallelism",
            Self::Sharding => "Sharding (ZeRO, FSDP)",
            Self::Recompute => "Recomputation",
            Self::Overlap => "Overlap of communication",
            Self::RankOrder => "Order of ranks",
            Self::Precision => "Precision (FP8, FP4)",
            Self::Offload => "Optimizer states on the host",
            Self::OffloadModules => "Activations on the host",
            Self::Instances => "Replicas of shards (HSDP)",
        }
    }

    /// Whether it has sizes; only those can be restricted to a range.
    #[must_use]
    pub const fn has_sizes(self) -> bool {
        matches!(
            self,
            Self::Tensor
                | Self::Pipeline
                | Self::VirtualPipeline
                | Self::Context
                | Self::Expert
                | Self::ExpertTensor
                | Self::MicroBatch
                | Self::Instances
        )
    }

    fn index(self) -> usize {
        self as usize
    }
}

/// How far a dimension is varied.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Values {
    /// Only as in the plan.
    Stated,
    /// Everything that the software offers.
    #[default]
    Open,
    /// The same between two sizes, inclusive; the same as open if the dimension has no sizes.
    Between(u64, u64),
}

impl Values {
    /// Whether `value` may be tried if the plan has `stated`.
    pub(crate) fn allow(&self, value: u64, stated: u64) -> bool {
        match self {
            Self::Stated => value == stated,
            Self::Open => true,
            Self::Between(least, most) => (*least..=*most).contains(&value),
        }
    }

    /// Whether anything but the plan's own value may be tried.
    pub(crate) fn vary(&self) -> bool {
        *self != Self::Stated
    }
}

/// How far each dimension is varied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choices([Values; Dimension::NAMED.len()]);

impl Default for Choices {
    /// Everything is open that does not change the training's numerics, with two exceptions: what stays on the host,
    /// which never shortens a step, and groups of replicas, each size of which multiplies the search time. Precision
    /// is as stated.
    fn default() -> Self {
        Self([const { Values::Open }; Dimension::NAMED.len()])
            .with(Dimension::Precision, Values::Stated)
            .with(Dimension::Offload, Values::Stated)
            .with(Dimension::OffloadModules, Values::Stated)
            .with(Dimension::Instances, Values::Stated)
    }
}

impl Choices {
    /// Nothing is varied; a base for opening single dimensions.
    #[must_use]
    pub fn stated() -> Self {
        Self([const { Values::Stated }; Dimension::NAMED.len()])
    }

    /// The same with `values` for `dimension`.
    #[must_use]
    pub fn with(mut self, dimension: Dimension, values: Values) -> Self {
        if let Some(slot) = self.0.get_mut(dimension.index()) {
            *slot = values;
        }
        self
    }

    /// How far `dimension` is varied.
    #[must_use]
    pub fn get(&self, dimension: Dimension) -> &Values {
        self.0.get(dimension.index()).unwrap_or(&Values::Stated)
    }
}
