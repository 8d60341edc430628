//! `report.memory`.

use super::super::tree::{Explanations, tree};
use crate::estimate::{LayerNode, Load, Memory, RankMemory, memory_doubts};
use crate::json::Writer;
use crate::plan::Plan;
use crate::topology::{Groups, Rank};

pub(super) fn memory(w: &mut Writer, plan: &Plan, memory: &Memory, explanations: &mut Explanations) {
    w.object("memory");
    w.list("ranks");
    for (index, (of, gpus)) in memory.ranks.iter().zip(gpus_by_stage(plan)).enumerate() {
        explanations.of(&format!("memory/ranks/{index}/breakdown"), &of.breakdown);
        rank(w, of, &gpus);
    }
    w.close();
    w.object("worst");
    w.count("pipeline_rank", memory.worst.pipeline_rank);
    w.count("peak_allocated", memory.worst.peak_allocated.get());
    w.count("peak_reserved", memory.worst.peak_reserved.get());
    w.text("at", memory.worst.at);
    w.close();
    w.count("capacity", memory.capacity.get());
    w.truth("fits", memory.fits);
    w.list("unknowns");
    for doubt in memory_doubts(plan) {
        w.text("", doubt);
    }
    w.close();
    layer(w, "layers", &memory.layers);
    w.object("saved_activations");
    w.some_count("dense", memory.saved_activations.dense.map(|bytes| bytes.get()));
    w.some_count("moe", memory.saved_activations.moe.map(|bytes| bytes.get()));
    w.close();
    w.close();
}

/// Labels of the GPUs of each pipeline rank.
fn gpus_by_stage(plan: &Plan) -> Vec<Vec<String>> {
    let groups = Groups::of(plan.layout());
    let mut stages: Vec<Vec<String>> = Vec::new();
    for _ in &plan.layout().stages.stages {
        stages.push(Vec::new());
    }
    for rank in (0..groups.world()).map(Rank::new) {
        let stage = usize::try_from(groups.coordinates(rank).pipeline).ok();
        if let Some(labels) = stage.and_then(|stage| stages.get_mut(stage)) {
            labels.push(rank.label(plan.cluster().gpus_per_node));
        }
    }
    stages
}

fn rank(w: &mut Writer, of: &RankMemory, gpus: &[String]) {
    let totals = &of.totals;
    w.object("");
    w.count("pipeline_rank", of.pipeline_rank);
    w.count("tensor_rank", of.tensor_rank);
    w.count("expert_rank", of.expert_rank);
    w.texts("gpus", gpus);
    w.count("parameters", totals.parameters.get());
    w.count("gradients", totals.gradients.get());
    w.count("optimizer", totals.optimizer.get());
    w.count("activations", totals.activations.get());
    w.count("temporaries", totals.temporaries.get());
    w.count("peak_allocated", totals.peak_allocated.get());
    w.count("framework", totals.framework.get());
    w.count("peak_reserved", totals.peak_reserved.get());
    w.count("between_steps", totals.between_steps.get());
    w.truth("fits", of.fits);
    w.text("at", of.at);
    w.some_text("within", of.within);
    w.list("chunks");
    for chunk in &of.chunks {
        w.object("");
        w.count("kept_per_micro_batch", chunk.kept.get());
        w.count("in_flight", chunk.in_flight);
        w.close();
    }
    w.close();
    tree(w, "breakdown", &of.breakdown);
    w.close();
}

fn layer(w: &mut Writer, name: &str, node: &LayerNode) {
    w.object(name);
    w.text("name", node.name);
    if node.times != 1 {
        w.count("times", node.times);
    }
    if let Some(shape) = &node.shape {
        w.counts("shape", shape);
    }
    load(w, &node.whole);
    w.object("sharded");
    if let Some(shape) = &node.sharded_shape {
        w.counts("shape", shape);
    }
    load(w, &node.sharded);
    w.close();
    if !node.children.is_empty() {
        w.list("children");
        for child in &node.children {
            layer(w, "", child);
        }
        w.close();
    }
    w.close();
}

fn load(w: &mut Writer, load: &Load) {
    w.count("parameters", load.parameters.get());
    w.count("parameter_bytes", load.parameter_bytes.get());
    w.count("activation_bytes", load.activation_bytes.get());
}
