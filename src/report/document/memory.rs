//! `report.memory`.

use serde_json::{Map, Value, json};

use super::super::tree::{explain, tree};
use crate::estimate::{LayerNode, Load, Memory, RankMemory};
use crate::plan::Plan;
use crate::topology::{Groups, Rank};

pub(super) fn memory(plan: &Plan, memory: &Memory, explanations: &mut Map<String, Value>) -> Value {
    let gpus = gpus_by_stage(plan);
    let ranks: Vec<Value> = memory
        .ranks
        .iter()
        .zip(gpus)
        .enumerate()
        .map(|(index, (of, gpus))| {
            explain(&format!("memory/ranks/{index}/breakdown"), &of.breakdown, explanations);
            rank(of, &gpus)
        })
        .collect();
    json!({
        "ranks": ranks,
        "worst": {
            "pipeline_rank": memory.worst.pipeline_rank,
            "peak_allocated": memory.worst.peak_allocated.get(),
            "peak_reserved": memory.worst.peak_reserved.get(),
            "at": memory.worst.at,
        },
        "capacity": memory.capacity.get(),
        "fits": memory.fits,
        "layers": layer(&memory.layers),
        "saved_activations": {
            "dense": memory.saved_activations.dense.map(|bytes| bytes.get()),
            "moe": memory.saved_activations.moe.map(|bytes| bytes.get()),
        },
    })
}

/// Labels of the GPUs of each pipeline rank.
fn gpus_by_stage(plan: &Plan) -> Vec<Vec<String>> {
    let groups = Groups::of(plan.layout());
    let mut stages = vec![Vec::new(); plan.layout().stages.stages.len()];
    for rank in (0..groups.world()).map(Rank::new) {
        let stage = usize::try_from(groups.coordinates(rank).pipeline).ok();
        if let Some(labels) = stage.and_then(|stage| stages.get_mut(stage)) {
            labels.push(rank.label(plan.cluster().gpus_per_node));
        }
    }
    stages
}

fn rank(of: &RankMemory, gpus: &[String]) -> Value {
    let totals = &of.totals;
    json!({
        "pipeline_rank": of.pipeline_rank,
        "tensor_rank": of.tensor_rank,
        "expert_rank": of.expert_rank,
        "gpus": gpus,
        "parameters": totals.parameters.get(),
        "gradients": totals.gradients.get(),
        "optimizer": totals.optimizer.get(),
        "activations": totals.activations.get(),
        "temporaries": totals.temporaries.get(),
        "peak_allocated": totals.peak_allocated.get(),
        "framework": totals.framework.get(),
        "peak_reserved": totals.peak_reserved.get(),
        "between_steps": totals.between_steps.get(),
        "fits": of.fits,
        "at": of.at,
        "within": of.within,
        "chunks": of.chunks.iter().map(|chunk| json!({
            "kept_per_micro_batch": chunk.kept.get(),
            "in_flight": chunk.in_flight,
        })).collect::<Vec<_>>(),
        "breakdown": tree(&of.breakdown),
    })
}

fn layer(node: &LayerNode) -> Value {
    let mut object = Map::new();
    object.insert("name".into(), Value::from(node.name));
    if node.times != 1 {
        object.insert("times".into(), Value::from(node.times));
    }
    if let Some(shape) = &node.shape {
        object.insert("shape".into(), shape.iter().copied().collect());
    }
    load(&node.whole, &mut object);
    let mut sharded = Map::new();
    if let Some(shape) = &node.sharded_shape {
        sharded.insert("shape".into(), shape.iter().copied().collect());
    }
    load(&node.sharded, &mut sharded);
    object.insert("sharded".into(), Value::Object(sharded));
    if !node.children.is_empty() {
        object.insert("children".into(), node.children.iter().map(layer).collect());
    }
    Value::Object(object)
}

fn load(load: &Load, object: &mut Map<String, Value>) {
    object.insert("parameters".into(), Value::from(load.parameters.get()));
    object.insert("parameter_bytes".into(), Value::from(load.parameter_bytes.get()));
    object.insert("activation_bytes".into(), Value::from(load.activation_bytes.get()));
}
