//! `report.topology`.

use crate::json::Writer;
use crate::plan::{Chunk, Plan};
use crate::topology::{GroupKind, Groups, Rank};

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

pub(super) fn topology(w: &mut Writer, plan: &Plan) {
    let groups = Groups::of(plan.layout());
    let gpus_per_node = plan.cluster().gpus_per_node;
    w.object("topology");
    w.count("world_size", groups.world());
    w.count("num_nodes", plan.cluster().num_nodes);
    w.count("gpus_per_node", gpus_per_node);
    w.object("groups");
    let mut kinds = KINDS.to_vec();
    kinds.extend(groups.kinds());
    for (at, kind) in kinds.iter().enumerate() {
        if kinds.iter().position(|other| other.name() == kind.name()) == Some(at) {
            list(w, &groups, *kind);
        }
    }
    w.close();
    w.list("labels");
    for rank in 0..groups.world() {
        w.text("", &Rank::new(rank).label(gpus_per_node));
    }
    w.close();
    stages(w, plan);
    w.close();
}

/// Every group of a kind as a list of ranks, sorted by first rank.
fn list(w: &mut Writer, groups: &Groups, kind: GroupKind) {
    let mut lists: Vec<Vec<u64>> = Vec::new();
    for group in groups.all(kind) {
        let mut ranks = Vec::new();
        for rank in group.ranks() {
            ranks.push(rank.get());
        }
        lists.push(ranks);
    }
    w.list(kind.name());
    lists.sort_by_key(|ranks| ranks.first().copied());
    for ranks in &lists {
        w.counts("", ranks);
    }
    w.close();
}

fn stages(w: &mut Writer, plan: &Plan) {
    w.list("stages");
    for (pipeline_rank, stage) in (0_u64..).zip(&plan.layout().stages.stages) {
        w.object("");
        w.count("pipeline_rank", pipeline_rank);
        w.list("chunks");
        for (virtual_rank, of) in (0_u64..).zip(&stage.chunks) {
            chunk(w, virtual_rank, of);
        }
        w.close();
        w.close();
    }
    w.close();
}

fn chunk(w: &mut Writer, virtual_rank: u64, chunk: &Chunk) {
    w.object("");
    w.count("virtual_rank", virtual_rank);
    let layers = &chunk.layers;
    let ends = [layers.start, layers.end.saturating_sub(1)];
    w.counts("layers", if layers.is_empty() { &[] } else { &ends });
    w.truth("embedding", chunk.embedding);
    w.truth("output_layer", chunk.output_layer);
    w.count("mtp_layers", chunk.mtp_layers);
    w.close();
}
