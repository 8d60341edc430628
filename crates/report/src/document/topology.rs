//! `report.topology`.

use serde::Serialize;

use super::tree::Object;
use shardscope_plan::{self as plan, Plan};
use shardscope_topology::{GroupKind, Groups, Rank, Steps};

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
    /// Process groups by kind, sorted by first rank.
    pub groups: Object<&'static str, GroupsOfKind>,
    /// `n0_g0` and so on, by rank.
    pub labels: Labels,
    /// What each pipeline rank holds.
    pub stages: Vec<Stage>,
}

/// The process groups of a kind.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum GroupsOfKind {
    /// Each group as the list of its ranks: up to [`LISTED`] ranks in total, or if all were requested.
    Listed(Vec<Vec<u64>>),
    /// More of them, by rule.
    ByRule {
        /// Number of groups.
        count: u64,
        /// Members of each.
        size: u64,
        /// The rule that generates them.
        rule: Rule,
        /// The first members of the first groups.
        first: Vec<Vec<u64>>,
    },
}

/// Where groups and members are. Member i of group k is the sum of digit times stride over the axes of both: k is
/// written with one digit for each axis of `groups`, i with one for each of `members`, the first axis fastest.
#[derive(Debug, Serialize)]
pub struct Rule {
    /// First ranks of the groups.
    pub groups: Vec<Axis>,
    /// Members from the first rank on.
    pub members: Vec<Axis>,
}

/// Places along an axis.
#[derive(Debug, Serialize)]
pub struct Axis {
    /// Number of groups.
    pub count: u64,
    /// Ranks from one to the next.
    pub stride: u64,
}

/// Names of GPUs.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Labels {
    /// Every name: up to [`LISTED`] ranks in total, or if all were requested.
    Listed(Vec<String>),
    /// More of them, by rule.
    ByRule {
        /// How many there are.
        count: u64,
        /// Which ranks: member i is the first rank plus the sum of digits of i times strides.
        ranks: RanksByRule,
        /// How a rank is labelled.
        label: &'static str,
        /// The first of them.
        first: Vec<String>,
    },
}

/// Ranks by rule.
#[derive(Debug, Serialize)]
pub struct RanksByRule {
    /// The lowest.
    pub first: u64,
    /// Places from there on, the first axis fastest.
    pub members: Vec<Axis>,
}

/// How many per-rank entries are listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lists {
    /// Every rank up to [`LISTED`] of them; above that, the rule that gives the groups and the first of each kind.
    #[default]
    Short,
    /// Every rank.
    Full,
}

/// Ranks up to which groups and labels are lists. A document of a million ranks would have 400 MB of them.
pub const LISTED: u64 = 4_096;
/// Number of groups listed if they are given by rule.
const FIRST_GROUPS: u64 = 4;
/// Number of members listed for each.
const FIRST_MEMBERS: usize = 16;
/// How a rank is labelled, as a template.
const LABEL: &str = "n{rank / gpus_per_node}_g{rank % gpus_per_node}";

impl Lists {
    fn is_full(self, groups: &Groups) -> bool {
        self == Self::Full || groups.world() <= LISTED
    }
}

/// Layers and other parts of one pipeline rank.
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
    pub(super) fn new(plan: &Plan, lists: Lists) -> Self {
        let groups = Groups::new(plan.layout());
        let cluster = plan.cluster();
        let mut kinds: Vec<(&'static str, GroupsOfKind)> = Vec::new();
        // Kinds of the contract first, in its order; then any others that the plan has.
        for kind in KINDS.into_iter().chain(groups.kinds()) {
            // `groups.kinds()` repeats most of them.
            if kinds.iter().all(|(name, _)| *name != kind.name()) {
                kinds.push((kind.name(), GroupsOfKind::new(&groups, kind, lists)));
            }
        }
        Self {
            world_size: groups.world(),
            num_nodes: cluster.num_nodes,
            gpus_per_node: cluster.gpus_per_node,
            groups: Object(kinds),
            labels: Labels::all(&groups, cluster.gpus_per_node, lists),
            stages: (0_u64..).zip(&plan.layout().stages.stages).map(Stage::new).collect(),
        }
    }
}

impl GroupsOfKind {
    fn new(groups: &Groups, kind: GroupKind, lists: Lists) -> Self {
        let rule = if lists.is_full(groups) { None } else { groups.rule(kind) };
        // Kinds that no rule describes are listed whatever their size.
        let Some(rule) = rule else { return Self::Listed(listed(groups, kind)) };
        let (count, size) = (groups.count(kind), groups.size(kind));
        let members = |group| (0..size).take(FIRST_MEMBERS).map(|place| rule.rank(group, place)).collect();
        Self::ByRule {
            count,
            size,
            first: (0..count.min(FIRST_GROUPS)).map(members).collect(),
            rule: Rule { groups: axes(&rule.groups), members: axes(&rule.members) },
        }
    }
}

/// Every group of a kind as a list of ranks, sorted by first rank.
fn listed(groups: &Groups, kind: GroupKind) -> Vec<Vec<u64>> {
    let mut lists: Vec<Vec<u64>> =
        groups.all(kind).map(|group| group.ranks().map(Rank::get).collect()).collect();
    // Groups come by index, which need not be the order of first ranks.
    lists.sort_by_key(|ranks| ranks.first().copied());
    lists
}

fn axes(steps: &[Steps]) -> Vec<Axis> {
    steps.iter().map(|&Steps { count, stride }| Axis { count, stride }).collect()
}

impl Labels {
    fn all(groups: &Groups, gpus_per_node: u64, lists: Lists) -> Self {
        let world = groups.world();
        if lists.is_full(groups) {
            return Self::Listed((0..world).map(|rank| Rank::new(rank).label(gpus_per_node)).collect());
        }
        let every = [Steps { count: world, stride: 1 }];
        Self::by_rule(world, 0, &every, &mut (0..world), gpus_per_node)
    }

    fn by_rule(
        count: u64,
        first: u64,
        members: &[Steps],
        ranks: &mut dyn Iterator<Item = u64>,
        gpus_per_node: u64,
    ) -> Self {
        let named = |rank| Rank::new(rank).label(gpus_per_node);
        Self::ByRule {
            count,
            ranks: RanksByRule { first, members: axes(members) },
            label: LABEL,
            first: ranks.take(FIRST_MEMBERS).map(named).collect(),
        }
    }

    /// Those of each pipeline rank.
    pub(super) fn by_stage(plan: &Plan, lists: Lists) -> Vec<Self> {
        let groups = Groups::new(plan.layout());
        let gpus_per_node = plan.cluster().gpus_per_node;
        // The ranks of a stage are one group of this kind.
        let kind = GroupKind::TensorDataContext;
        let rule = if lists.is_full(&groups) { None } else { groups.rule(kind) };
        let Some(rule) = rule else {
            return listed(&groups, kind)
                .into_iter()
                .map(|ranks| {
                    let mut ranks = ranks;
                    // Members are in group order, while labels are read by rank.
                    ranks.sort();
                    Self::Listed(ranks.into_iter().map(|rank| Rank::new(rank).label(gpus_per_node)).collect())
                })
                .collect();
        };
        let size = groups.size(kind);
        let stage = |stage| {
            let mut ranks = (0..size).map(|place| rule.rank(stage, place));
            Self::by_rule(size, rule.rank(stage, 0), &rule.members, &mut ranks, gpus_per_node)
        };
        (0..groups.count(kind)).map(stage).collect()
    }
}

impl Stage {
    fn new((pipeline_rank, stage): (u64, &plan::Stage)) -> Self {
        Self { pipeline_rank, chunks: (0_u64..).zip(&stage.chunks).map(Chunk::new).collect() }
    }
}

impl Chunk {
    fn new((virtual_rank, chunk): (u64, &plan::Chunk)) -> Self {
        let layers = &chunk.layers;
        Self {
            virtual_rank,
            // Inclusive, as people count layers.
            layers: if layers.is_empty() { Vec::new() } else { vec![layers.start, layers.end - 1] },
            embedding: chunk.embedding,
            output_layer: chunk.output_layer,
            mtp_layers: chunk.mtp_layers,
        }
    }
}
