//! `report.topology`.

use serde_json::{Map, Value, json};

use crate::plan::{Chunk, Plan};
use crate::text::sort;
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

pub(super) fn topology(plan: &Plan) -> Value {
    let groups = Groups::of(plan.layout());
    let mut lists = Map::new();
    for kind in KINDS.into_iter().chain(groups.kinds()) {
        if !lists.contains_key(kind.name()) {
            lists.insert(kind.name().to_owned(), list(&groups, kind));
        }
    }
    let gpus_per_node = plan.cluster().gpus_per_node;
    let labels: Vec<String> = (0..groups.world()).map(|rank| Rank::new(rank).label(gpus_per_node)).collect();
    json!({
        "world_size": groups.world(),
        "num_nodes": plan.cluster().num_nodes,
        "gpus_per_node": gpus_per_node,
        "groups": lists,
        "labels": labels,
        "stages": stages(plan),
    })
}

/// Every group of a kind as a list of ranks, sorted by first rank.
fn list(groups: &Groups, kind: GroupKind) -> Value {
    let mut lists: Vec<Vec<u64>> =
        groups.all(kind).map(|group| group.ranks().map(Rank::get).collect()).collect();
    sort(&mut lists, &|one, other| one.first().cmp(&other.first()));
    Value::from(lists)
}

fn stages(plan: &Plan) -> Value {
    let stages = (0_u64..).zip(&plan.layout().stages.stages);
    stages
        .map(|(pipeline_rank, stage)| {
            let chunks: Vec<Value> = (0_u64..).zip(&stage.chunks).map(chunk).collect();
            json!({ "pipeline_rank": pipeline_rank, "chunks": chunks })
        })
        .collect()
}

fn chunk((virtual_rank, chunk): (u64, &Chunk)) -> Value {
    let layers = match chunk.layers.end.checked_sub(1) {
        Some(last) if !chunk.layers.is_empty() => json!([chunk.layers.start, last]),
        _ => json!([]),
    };
    json!({
        "virtual_rank": virtual_rank,
        "layers": layers,
        "embedding": chunk.embedding,
        "output_layer": chunk.output_layer,
        "mtp_layers": chunk.mtp_layers,
    })
}
