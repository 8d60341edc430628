//! Details of one GPU: its place, its layers, its groups and the links to its partners.

use super::Geometry;
use shardscope_plan::{Embeddings, Plan};
use shardscope_topology::{GroupKind, Groups, Link, Rank, notation};
use shardscope_units::grouped;

/// Largest group whose every member gets a line in the picture; in a larger one only the two neighbours do.
const MOST_WIRED: usize = 8;
/// Members listed before the rest becomes `… N more`.
const MOST_WRITTEN: usize = 16;

/// One GPU.
#[derive(Clone, Debug, PartialEq)]
pub struct About {
    /// Which.
    pub rank: Rank,
    /// `n0_g3`.
    pub label: String,
    /// Pipeline stage.
    pub stage: u64,
    /// The layers it holds, in words.
    pub holds: Vec<String>,
    /// Its groups of more than one member.
    pub relations: Vec<Relation>,
}

/// A group the GPU belongs to.
#[derive(Clone, Debug, PartialEq)]
pub struct Relation {
    /// Which kind.
    pub kind: GroupKind,
    /// The kind in words.
    pub name: &'static str,
    /// Its number among the groups of its kind.
    pub index: u64,
    /// Groups of this kind.
    pub of: u64,
    /// Its members.
    pub members: Vec<Rank>,
    /// Its members as `[n0_g0 n0_g1]`, shortened when there are many.
    pub written: String,
    /// The slowest link between them.
    pub link: Link,
}

/// A line from the picked GPU to a partner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// The group they share.
    pub kind: GroupKind,
    /// From the middle of the picked cell.
    pub from: (u32, u32),
    /// To the middle of the partner's.
    pub to: (u32, u32),
    /// Link between them.
    pub link: Link,
}

/// The GPU that a user names by its label or its rank.
#[must_use]
pub fn find_gpu(plan: &Plan, wanted: &str) -> Option<Rank> {
    let wanted = wanted.trim();
    let label = Rank::from_label(wanted, plan.cluster().gpus_per_node);
    let rank = label.or_else(|| wanted.parse().ok().map(Rank::new))?;
    (rank.get() < plan.layout().world_size).then_some(rank)
}

/// The kinds of groups of `plan` that hold more than one GPU and that are used for communication.
#[must_use]
pub fn relations(plan: &Plan) -> Vec<GroupKind> {
    let groups = Groups::new(plan.layout());
    let moe = plan.model().experts.is_some();
    // With context parallelism gradients are reduced over data and context ranks together: the data group alone sends
    // nothing.
    let data = if plan.layout().context > 1 { GroupKind::DataContext } else { GroupKind::Data };
    let tied = plan.model().embeddings == Embeddings::Tied;
    let wanted = [
        (GroupKind::Tensor, true),
        // Megatron has an embedding group in any pipeline; only tied embeddings send gradients in it.
        (GroupKind::Context, true),
        (GroupKind::Pipeline, true),
        (data, true),
        (GroupKind::Embedding, tied),
        (GroupKind::Expert, moe),
        (GroupKind::ExpertTensor, moe),
        (GroupKind::ExpertData, moe),
    ];
    let mut kinds = Vec::new();
    for (kind, wanted) in wanted {
        if wanted && groups.size(kind) > 1 {
            kinds.push(kind);
        }
    }
    kinds
}

/// The name of a kind of group.
#[must_use]
pub fn relation_name(kind: GroupKind) -> &'static str {
    match kind {
        GroupKind::Tensor => "tensor parallel",
        GroupKind::Pipeline => "pipeline parallel",
        GroupKind::Data => "data parallel",
        GroupKind::Context => "context parallel",
        GroupKind::DataContext => "data and context parallel",
        GroupKind::Embedding => "tied embeddings",
        GroupKind::Expert => "expert parallel",
        GroupKind::ExpertTensor => "expert tensor parallel",
        GroupKind::ExpertData => "expert data parallel",
        other => other.name(),
    }
}

/// Everything the map shows about `rank`; `None` if it is not in the cluster.
#[must_use]
pub fn about(plan: &Plan, rank: Rank) -> Option<About> {
    let groups = Groups::new(plan.layout());
    if rank.get() >= groups.world() {
        return None;
    }
    let per_node = plan.cluster().gpus_per_node;
    let stage = groups.coordinates(rank).pipeline;
    let mut found = Vec::new();
    for kind in relations(plan) {
        let Some(group) = groups.group(kind, rank) else { continue };
        let members: Vec<Rank> = group.ranks().collect();
        let mut written = notation(members.iter().copied().take(MOST_WRITTEN), per_node);
        // `1..`: a group of exactly as many needs no "0 more".
        if let Some(more @ 1..) = members.len().checked_sub(MOST_WRITTEN) {
            let more = grouped(more as u64);
            written = format!("{} … {more} more]", written.trim_end_matches(']'));
        }
        found.push(Relation {
            kind,
            name: relation_name(kind),
            index: group.index(),
            of: groups.count(kind),
            written,
            link: group.link(plan.cluster()),
            members,
        });
    }
    Some(About { rank, label: rank.label(per_node), stage, holds: holds(plan, stage), relations: found })
}

/// What the GPUs of a stage hold, chunk by chunk, in words.
#[must_use]
pub fn holds(plan: &Plan, stage: u64) -> Vec<String> {
    let stages = &plan.layout().stages.stages;
    let Some(stage) = usize::try_from(stage).ok().and_then(|stage| stages.get(stage)) else {
        return Vec::new();
    };
    let chunk = |chunk: &shardscope_plan::Chunk| {
        let mut parts = Vec::new();
        if chunk.embedding {
            parts.push("embedding".to_owned());
        }
        // Saturating: a chunk without layers (`start == end`, the last stage with only the loss) must not underflow
        // the `- 1` below.
        match chunk.layers.end.saturating_sub(chunk.layers.start) {
            0 => {}
            1 => parts.push(format!("layer {}", chunk.layers.start)),
            _ => parts.push(format!("layers {} to {}", chunk.layers.start, chunk.layers.end - 1)),
        }
        if chunk.mtp_layers > 0 {
            parts.push(format!("{} multi-token-prediction layers", chunk.mtp_layers));
        }
        if chunk.output_layer {
            parts.push("output layer and loss".to_owned());
        }
        if parts.is_empty() { "nothing".to_owned() } else { parts.join(", ") }
    };
    stage.chunks.iter().map(chunk).collect()
}

/// What each partner shares with the GPU, in short names, and the GPU itself.
#[must_use]
pub fn shared(about: &About) -> Vec<(Rank, String)> {
    let mut shared: Vec<(Rank, String)> = vec![(about.rank, "picked".to_owned())];
    for relation in &about.relations {
        let short = relation.kind.short().to_ascii_uppercase();
        // `short()` is for addresses and longer; the captions of cells have room for three letters.
        let short = if relation.kind == GroupKind::Embedding { "EMB" } else { &short };
        for member in relation.members.iter().filter(|member| **member != about.rank) {
            // A partner shared by several groups has one caption with all their names.
            match shared.iter_mut().find(|(rank, _)| rank == member) {
                Some((_, text)) => {
                    text.push_str(" · ");
                    text.push_str(short);
                }
                None => shared.push((*member, short.to_owned())),
            }
        }
    }
    shared
}

/// The lines from a GPU to its partners in the picture: to all of a small group, to the neighbours in a large one.
#[must_use]
pub fn edges(plan: &Plan, about: &About, map: &Geometry) -> Vec<Edge> {
    let from = map.cell(about.rank.get()).middle();
    let mut edges = Vec::new();
    for relation in &about.relations {
        let own = relation.members.iter().position(|member| *member == about.rank).unwrap_or(0);
        for (place, partner) in relation.members.iter().enumerate() {
            // Neighbours in group order are the ones that communicate in a ring.
            let near = place.abs_diff(own) <= 1 || relation.members.len() <= MOST_WIRED;
            if place == own || !near {
                continue;
            }
            edges.push(Edge {
                kind: relation.kind,
                from,
                to: map.cell(partner.get()).middle(),
                link: Link::between(plan.cluster(), about.rank, *partner),
            });
        }
    }
    edges
}
