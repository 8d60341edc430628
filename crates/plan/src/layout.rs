//! How the work is split over the ranks.

use super::split::{Chunk, StageMap, StageSplit};

/// Degrees of parallelism and the order of ranks. `data` and `expert_data` follow from the others; [`Layout::new`]
/// computes them.
#[derive(Clone, Debug, PartialEq)]
pub struct Layout {
    /// All ranks.
    pub world_size: u64,
    /// Tensor parallel size, t.
    pub tensor: u64,
    /// Pipeline parallel size, p.
    pub pipeline: u64,
    /// Model chunks per rank, v; 1 without interleaving.
    pub virtual_pipeline: u64,
    /// Context parallel size, c.
    pub context: u64,
    /// Expert parallel size, e.
    pub expert: u64,
    /// Expert tensor parallel size, et; the tensor size unless given.
    pub expert_tensor: u64,
    /// Data parallel size, d = world / (t p c).
    pub data: u64,
    /// Expert data parallel size, edp = world / (et e p).
    pub expert_data: u64,
    /// `--sequence-parallel`; never on with `tensor` 1.
    pub sequence_parallel: bool,
    /// Order in which ranks are numbered.
    pub rank_order: RankOrder,
    /// How context parallelism exchanges keys and values.
    pub context_kind: ContextKind,
    /// `--hierarchical-context-parallel-sizes`, inner first; empty when not used.
    pub hierarchical_context: Vec<u64>,
    /// `--num-distributed-optimizer-instances`.
    pub distributed_optimizer_instances: u64,
    /// Consecutive ranks over which each weight has a second shard for backward (ZeRO++ `zero_hpz_partition_size`); 0
    /// without.
    pub second_shards: u64,
    /// `--microbatch-group-size-per-virtual-pipeline-stage`; `pipeline` unless given.
    pub microbatch_group_size: u64,
    /// In which order a stage works through its micro-batches.
    pub schedule: PipelineSchedule,
    /// How the stages were specified.
    pub split: StageSplit,
    /// Which layers and ends are on which stage.
    pub stages: StageMap,
}

impl Layout {
    /// Ranks that share one replica's dense weights: t · p.
    #[must_use]
    pub fn model_parallel(&self) -> u64 {
        self.tensor * self.pipeline
    }

    /// Ranks over which the distributed optimizer shards dense states: d · c / instances.
    #[must_use]
    pub fn dense_shards(&self) -> u64 {
        // Context-parallel ranks hold the same weights as data-parallel ranks, so states are sharded over both.
        (self.data * self.context / self.distributed_optimizer_instances.max(1)).max(1)
    }

    /// Number of rank groups that hold second shards of all weights: zero, one (all ranks) or more.
    #[must_use]
    pub fn second_groups(&self) -> u64 {
        let ranks = self.data * self.context;
        // 0 means off.
        ranks.checked_div(self.second_shards).map_or(0, |groups| groups.max(1))
    }

    /// Ranks over which the distributed optimizer shards expert states: edp / instances.
    #[must_use]
    pub fn expert_shards(&self) -> u64 {
        // No factor for context parallelism: context-parallel ranks are already counted in expert DP (edp = world /
        // (et e p)).
        (self.expert_data / self.distributed_optimizer_instances.max(1)).max(1)
    }
}

/// Order of the rank numbering, fastest first (`megatron/core/parallel_state.py`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RankOrder {
    /// tp-cp-ep-dp-pp, the default.
    TpCpEpDpPp,
    /// `--use-tp-pp-dp-mapping`: tp-cp-ep-pp-dp.
    TpCpEpPpDp,
}

/// The order of micro-batches on the stages of a pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PipelineSchedule {
    /// 1F1B, interleaved with more than one chunk per rank: Megatron's and most others'.
    OneForwardOneBackward,
    /// All forwards, then all backwards (Huang et al. 2019).
    GPipe,
    /// ZB-H1, also called ZB-1p: weight gradients fill the cool-down bubble (Qi et al. 2023, section 2).
    ZeroBubbleH1,
    /// ZB-H2, also called ZB-2p: more forwards in the warm-up, no bubble left (Qi et al. 2023, section 2).
    ZeroBubbleH2,
    /// ZB-V: two chunks per rank, down and up again (Qi et al. 2024, V-ZB).
    ZeroBubbleV,
    /// V-Half: half the activations of 1F1B (Qi et al. 2024).
    VHalf,
    /// V-Min: a third of the activations of 1F1B (Qi et al. 2024).
    VMin,
    /// 1F1B-V: V-shaped chunks, with the backward pass not split (Qi et al. 2024, appendix).
    OneForwardOneBackwardV,
    /// DualPipe: two directions at once, two copies of the weights (DeepSeek-V3, section 3.2.1).
    DualPipe,
    /// DualPipeV: DualPipe halved into a V shape (DeepSeek, DualPipe repository).
    DualPipeV,
}

impl Layout {
    /// Copies of the model in one pipeline: `DualPipe` runs two in opposite directions.
    #[must_use]
    pub fn copies(&self) -> u64 {
        // A rule refuses any other number of chunks; until it does, all chunks belong to one copy.
        let mirrored = self.schedule == PipelineSchedule::DualPipe && self.virtual_pipeline == 2;
        if mirrored { 2 } else { 1 }
    }

    /// The chunks of one copy of the model, stage by stage.
    pub fn model_chunks(&self) -> impl Iterator<Item = &Chunk> {
        // In that case a rank's second chunk belongs to the other copy.
        let own = if self.copies() > 1 { 1 } else { usize::MAX };
        self.stages.stages.iter().flat_map(move |stage| stage.chunks.iter().take(own))
    }
}

impl PipelineSchedule {
    /// Every kind with its name in the settings (`pipeline_schedule`).
    const NAMES: [(Self, &'static str); 10] = [
        (Self::OneForwardOneBackward, "1f1b"),
        (Self::GPipe, "gpipe"),
        (Self::ZeroBubbleH1, "zb-h1"),
        (Self::ZeroBubbleH2, "zb-h2"),
        (Self::ZeroBubbleV, "zb-v"),
        (Self::VHalf, "v-half"),
        (Self::VMin, "v-min"),
        (Self::OneForwardOneBackwardV, "1f1b-v"),
        (Self::DualPipe, "dualpipe"),
        (Self::DualPipeV, "dualpipe-v"),
    ];

    /// The number of model chunks per rank that the kind fixes itself; `None` if the settings decide.
    #[must_use]
    pub const fn own_chunks(self) -> Option<u64> {
        match self {
            Self::OneForwardOneBackward | Self::GPipe => None,
            Self::ZeroBubbleH1 | Self::ZeroBubbleH2 => Some(1),
            Self::ZeroBubbleV
            | Self::VHalf
            | Self::VMin
            | Self::OneForwardOneBackwardV
            | Self::DualPipe
            | Self::DualPipeV => Some(2),
        }
    }

    /// Every kind, in the order of the settings' names.
    pub fn all() -> impl Iterator<Item = Self> {
        Self::NAMES.into_iter().map(|(kind, _)| kind)
    }

    /// Its name in the settings.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(kind, _)| *kind == self).map_or("1f1b", |(_, name)| name)
    }
}

/// `--cp-comm-type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContextKind {
    /// A ring of sends, the default.
    PointToPoint,
    /// Gathers keys and values.
    AllGather,
    /// Trades heads for sequence (Ulysses).
    AllToAll,
    /// All-to-all inside, a ring across.
    AllToAllAndPointToPoint,
}
