//! `report.topology`.

use serde::Serialize;

use super::tree::Object;
use shardscope_plan::{self as plan, Plan};
use shardscope_topology::{GroupKind, Groups, Rank};

/// The kinds of groups of the document, in its order.
const KINDS: [GroupKind; 12] = [
    GroupKind::Tensor,
    GroupKind::Pipeline,
    GroupKind::Data,
    GroupKind::Context,
    GroupKind::DataContext,
    GroupKind::Expert,
    GroupKind::ExpertTensor,
    GroupKind::ExpertData,
    GroupKind::TensorExpert,
    GroupKind::Embedding,
    GroupKind::PositionEmbedding,
    GroupKind::Model,
];

/// Which ranks work together, and where they are.
#[derive(Debug, Serialize)]
pub struct Topology {
    /// Ranks, one for each GPU.
    pub world_size: u64,
    /// Nodes.
    pub num_nodes: u64,
    /// GPUs of a node.
    pub gpus_per_node: u64,
    /// Process groups by kind: each kind's groups as lists of ranks, sorted by first rank.
    pub groups: Object<&'static str, Vec<Vec<u64>>>,
    /// `n0_g0` and so on, by rank.
    pub labels: Vec<String>,
    /// What each pipeline rank holds.
    pub stages: Vec<Stage>,
}

/// What a pipeline rank holds.
#[derive(Debug, Serialize)]
pub struct Stage {
    /// Place in the pipeline group.
    pub pipeline_rank: u64,
    /// Model chunks, one without interleaving.
    pub chunks: Vec<Chunk>,
}

/// A model chunk of a pipeline rank.
#[derive(Debug, Serialize)]
pub struct Chunk {
    /// Place among the chunks of its pipeline rank.
    pub virtual_rank: u64,
    /// First and last transformer layer, from 0; empty where there is none.
    pub layers: Vec<u64>,
    /// Whether the embedding is here.
    pub embedding: bool,
    /// Whether the output layer is here.
    pub output_layer: bool,
    /// Multi-token prediction layers.
    pub mtp_layers: u64,
}

impl Topology {
    pub(super) fn of(plan: &Plan) -> Self {
        let groups = Groups::of(plan.layout());
        let cluster = plan.cluster();
        let mut kinds: Vec<(&'static str, Vec<Vec<u64>>)> = Vec::new();
        for kind in KINDS.into_iter().chain(groups.kinds()) {
            if kinds.iter().all(|(name, _)| *name != kind.name()) {
                kinds.push((kind.name(), lists(&groups, kind)));
            }
        }
        Self {
            world_size: groups.world(),
            num_nodes: cluster.num_nodes,
            gpus_per_node: cluster.gpus_per_node,
            groups: Object(kinds),
            labels: (0..groups.world()).map(|rank| Rank::new(rank).label(cluster.gpus_per_node)).collect(),
            stages: (0_u64..).zip(&plan.layout().stages.stages).map(Stage::of).collect(),
        }
    }
}

/// Every group of a kind as a list of ranks, sorted by first rank.
fn lists(groups: &Groups, kind: GroupKind) -> Vec<Vec<u64>> {
    let mut lists: Vec<Vec<u64>> =
        groups.all(kind).map(|group| group.ranks().map(Rank::get).collect()).collect();
    lists.sort_by_key(|ranks| ranks.first().copied());
    lists
}

impl Stage {
    fn of((pipeline_rank, stage): (u64, &plan::Stage)) -> Self {
        Self { pipeline_rank, chunks: (0_u64..).zip(&stage.chunks).map(Chunk::of).collect() }
    }
}

impl Chunk {
    fn of((virtual_rank, chunk): (u64, &plan::Chunk)) -> Self {
        let layers = &chunk.layers;
        Self {
            virtual_rank,
            layers: if layers.is_empty() { Vec::new() } else { vec![layers.start, layers.end - 1] },
            embedding: chunk.embedding,
            output_layer: chunk.output_layer,
            mtp_layers: chunk.mtp_layers,
        }
    }
}
