//! How torchtitan distributes batch, weights and layers over ranks.

use crate::Origin;
use crate::leaves::{Leaf, Leaves};
use shardscope_plan::Field;

pub(super) const WHOSE: &str = "default of torchtitan";

/// The local batch is that of a data-parallel rank; a pipeline splits it into
/// micro-batches (of one sequence by default).
pub(super) fn batch(leaves: &mut Leaves<'_>) {
    let local = leaves.first(&["training.local_batch_size", "training.batch_size"]);
    let stages = leaves.reading.count(Field::PipelineModelParallelSize);
    let size = local.map_or(Some(8), Leaf::whole);
    let slice = leaves.get("parallelism.pipeline_parallel_microbatch_size");
    let global = leaves.get("training.global_batch_size").filter(|leaf| leaf.whole().is_some());
    if stages.unwrap_or(1) > 1 {
        let older = older_slice(leaves, size, stages.unwrap_or(1));
        let micro = slice.and_then(Leaf::whole).or(older).unwrap_or(1).max(1);
        match slice {
            Some(leaf) => leaves.say(Field::MicroBatchSize, &micro.to_string(), leaf),
            None => leaves.state(Field::MicroBatchSize, &micro.to_string(), Origin::Default, WHOSE),
        }
        let count = size.unwrap_or(micro) / micro;
        match (local, global) {
            (Some(leaf), None) => leaves.say_noted(
                Field::NumMicroBatches,
                &count.to_string(),
                leaf,
                "the local batch over its micro-batches",
            ),
            (None, None) => leaves.state(Field::NumMicroBatches, &count.to_string(), Origin::Default, WHOSE),
            _ => {}
        }
    } else {
        match local {
            Some(leaf) => drop(leaves.take(&[&leaf.path], Field::MicroBatchSize)),
            None => leaves.state(Field::MicroBatchSize, "8", Origin::Default, WHOSE),
        }
        if global.is_none() {
            leaves.state(Field::NumMicroBatches, "1", Origin::Default, WHOSE);
        }
    }
    if let Some(leaf) = global {
        leaves.say(Field::GlobalBatchSize, &leaf.value, leaf);
    }
}

/// Sequences of a micro-batch in configurations from before April 2025 (torchtitan's pull request 1073): the local
/// batch is split into a number of micro-batches, by default the number of pipeline ranks. They are recognized by that
/// number, or by the pipeline's degree under `experimental`.
fn older_slice(leaves: &mut Leaves<'_>, local: Option<u64>, stages: u64) -> Option<u64> {
    let given = leaves.first(&[
        "parallelism.pipeline_parallel_microbatches",
        "experimental.pipeline_parallel_microbatches",
    ]);
    let is_older = given.is_some() || leaves.get("experimental.pipeline_parallel_degree").is_some();
    let count = given.and_then(Leaf::whole).unwrap_or(stages).max(1);
    local.filter(|local| is_older && local.is_multiple_of(count)).map(|local| local / count)
}

/// FSDP2 over the shard degree, replicas of it over the replicate degree; -1 takes all remaining ranks.
pub(super) fn sharding(leaves: &mut Leaves<'_>) {
    let shard =
        leaves.first(&["parallelism.data_parallel_shard_degree", "training.data_parallel_shard_degree"]);
    let replicate = leaves
        .first(&["parallelism.data_parallel_replicate_degree", "training.data_parallel_replicate_degree"]);
    let shards = shard.and_then(Leaf::whole);
    let replicas = replicate.and_then(Leaf::whole).unwrap_or(1).max(1);
    if let (Some(shards), Some(leaf)) = (shards, shard) {
        let data = shards.max(1).saturating_mul(replicas);
        leaves.say_noted(Field::DataParallelSize, &data.to_string(), leaf, "replicas x shards");
    }
    // Context-parallel ranks share weights like data-parallel shards (`parallel_dims.py`: `fsdp_enabled`, mesh `fsdp`).
    let cut = leaves.reading.count(Field::ContextParallelSize).unwrap_or(1) > 1;
    let alone = matches!(shards, Some(0 | 1)) && !cut;
    if let Some(leaf) = replicate.filter(|_| replicas > 1 && !alone) {
        let note = "HSDP replicas of the sharded ranks";
        leaves.say_noted(Field::NumDistributedOptimizerInstances, &replicas.to_string(), leaf, note);
    }
    let reshard = leaves.get("parallelism.fsdp_reshard_after_forward");
    let piped = leaves.reading.value(Field::PipelineModelParallelSize).is_some_and(|stages| stages != "1");
    let keep = match reshard.map_or("default", |leaf| leaf.value.as_str()) {
        "never" => true,
        "always" => false,
        _ => piped,
    };
    let (stage, note) = match (alone, keep) {
        (true, _) => ("0", "one shard: nothing is sharded"),
        (_, true) => ("2", "FSDP2 that keeps gathered weights until the backward pass"),
        (_, false) => ("3", "FSDP2"),
    };
    leaves.state(Field::ZeroStage, stage, Origin::Derived, note);
    leaves.turn_on("training.enable_cpu_offload", Field::OffloadOptimizer);
    leaves.turn_on("training.enable_cpu_offload", Field::OffloadParam);
}

pub(super) fn pipeline(leaves: &mut Leaves<'_>) {
    // Without a pipeline, or with one chunk per rank, this has no effect.
    let per_stage = leaves.get("parallelism.pipeline_parallel_layers_per_stage");
    let piped = leaves.reading.value(Field::PipelineModelParallelSize).is_some_and(|stages| stages != "1");
    let Some(leaf) =
        leaves.first(&["parallelism.pipeline_parallel_schedule", "experimental.pipeline_parallel_schedule"])
    else {
        return;
    };
    if !piped {
        return;
    }
    let name = leaf.value.to_ascii_lowercase();
    let (schedule, chunks) = match name.as_str() {
        "gpipe" => ("gpipe", 1),
        "interleaved1f1b" | "loopedbfs" => ("1f1b", 2),
        "zbvzerobubble" => ("zb-v", 2),
        "dualpipev" => ("dualpipe-v", 2),
        "interleavedzerobubble" => ("zb-h1", 2),
        _ => ("1f1b", 1),
    };
    leaves.say(Field::PipelineSchedule, schedule, leaf);
    if chunks > 1 {
        match per_stage {
            Some(leaf) => leaves.say(Field::NumLayersPerVirtualPipelineStage, &leaf.value, leaf),
            None => leaves.say_noted(
                Field::VirtualPipelineModelParallelSize,
                "2",
                leaf,
                "two stages per rank, torchtitan's default",
            ),
        }
    }
}
