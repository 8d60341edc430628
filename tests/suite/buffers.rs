//! Gradient buffers compared with Megatron-LM's distributed optimizer, run at d98e8a64 (`data/megatron/buffers.jsonl`:
//! per rank and chunk the buffers, elements of the first 60 buckets).

use serde_json::Value;
use shardscope::estimate::memory;
use shardscope::estimate::traffic::{Buffer, buffers};
use shardscope::launch::plan_from_flags;
use shardscope::operators::WeightGroup;

fn shown(buffer: &Buffer) -> Value {
    let first: Vec<u64> = buffer.buckets.iter().copied().take(60).collect();
    serde_json::json!({
        "expert": buffer.group == WeightGroup::Expert,
        "shards": buffer.shards,
        "size": buffer.bucket_size,
        "n": buffer.buckets.len(),
        "numel": buffer.elements(),
        "first": first,
    })
}

#[test]
fn buffers_are_those_of_the_distributed_optimizer() {
    let mut compared = 0;
    for line in include_str!("../data/megatron/buffers.jsonl").lines() {
        let case: Value = serde_json::from_str(line).expect("a case a line");
        let world = case["world"].as_u64().unwrap();
        let per_node = if world.is_multiple_of(8) { 8 } else { 1 };
        for (kind, flag) in [("plain", ""), ("overlap", " --overlap-grad-reduce")] {
            let flags = format!("{}{flag} --use-distributed-optimizer", case["flags"].as_str().unwrap());
            let plan = plan_from_flags(&flags, world, per_node, "H100-SXM").expect("a plan");
            for rank in case["ranks"].as_array().unwrap() {
                let stage = rank["stage"].as_u64().unwrap() as usize;
                for (index, chunk) in rank["chunks"].as_array().unwrap().iter().enumerate() {
                    let found = buffers(&plan, stage, index);
                    let parameters: u64 = found.iter().map(|buffer| buffer.parameters).sum();
                    assert_eq!(chunk["params"].as_u64(), Some(parameters), "{} {stage} {index}", case["id"]);
                    let found: Vec<Value> = found.iter().map(shown).collect();
                    assert_eq!(chunk[kind], Value::from(found), "{} {kind} {stage} {index}", case["id"]);
                    compared += 1;
                }
            }
        }
    }
    assert!(compared > 40, "only {compared} chunks compared");
}

/// For each fp32 weight MindSpeed only holds the half that the bf16 weight lacks: 2 bytes per element instead of 4,
/// over the ranks that share states (`mindspeed/core/memory/reuse_param`, `docs/zh/features/reuse-fp32-param.md`).
#[test]
fn fp32_weights_that_share_memory_with_bf16_weights_take_half() {
    const RUN: &str = "--num-layers 4 --hidden-size 256 --num-attention-heads 8 --seq-length 512 --max-position-embeddings 512 \
        --micro-batch-size 1 --global-batch-size 64 --vocab-size 32000 --bf16 --use-distributed-optimizer";
    let states = |more: &str| {
        let plan = plan_from_flags(&format!("{RUN} {more}"), 8, 8, "Ascend-910B").expect("a plan");
        let rank = &memory(&plan).ranks[0];
        (rank.totals.optimizer.get(), rank.totals.parameters.get())
    };
    let ((plain, weights), (shared, same)) = (states(""), states("--reuse-fp32-param"));
    assert_eq!(weights, same);
    // Two moments of 4 bytes and the weight's own 4 or 2, for an eighth of all elements.
    assert_eq!(plain - shared, weights / 8);
    assert_eq!(plain * 10, shared * 12);
}
