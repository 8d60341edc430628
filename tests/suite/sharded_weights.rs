//! Weights that are sharded over replicas: what every micro-batch waits for, worked out by hand.

use shardscope::estimate::compute::Calibration;
use shardscope::estimate::memory;
use shardscope::estimate::time::time_with;
use shardscope::plan::DpSharding;
use shardscope::source::Source;
use shardscope::units::BytesPerSecond;

use super::epilogue::{ALL, ENDS, part, replicas, routed, same, timed, whole};
use super::formats::resolved;

/// Sharded weights come for both passes of every micro-batch and their gradients go: what is longer than its pass stands alone.
#[test]
fn sharded_weights_wait_where_they_are_longer_than_their_pass() {
    let mut draft = replicas(4);
    draft.recipe.dp_sharding = DpSharding::Parameters;
    draft.recipe.num_micro_batches = 3;
    draft.recipe.global_batch_size = 12;
    draft.cluster.accelerator.fast_link.bandwidth = BytesPerSecond::new(1e8);
    let ring = 0.75 * ALL as f64 / 1e8;
    let slow = timed(&draft);
    let chunk = slow.schedule.durations.chunks[0][0];
    // A pass is as long as its messages.
    same(chunk.forward.get(), ring * 2.0);
    same(chunk.backward.get() + chunk.weight.get(), ring * (2.0 + 4.0));
    draft.cluster.accelerator.fast_link.bandwidth = BytesPerSecond::new(1e15);
    let quick = timed(&draft);
    assert_eq!(part(&quick, "data"), 0.0);
    let free = quick.schedule.durations.chunks[0][0];
    let passes = free.forward.get() + free.backward.get() + free.weight.get();
    same(part(&slow, "data"), 3.0 * (ring * 8.0 - passes));
    // Nothing overlapped: on top of the passes.
    same(slow.upper_bound.get() - quick.upper_bound.get(), 3.0 * ring * 8.0 * (1.0 - 1e-7));
}

/// Second shards in each node of eight: weights come over the network for the first forward of four, and from the node after.
#[test]
fn second_shards_are_made_by_the_first_forward() {
    let mut draft = replicas(16);
    draft.recipe.dp_sharding = DpSharding::Parameters;
    draft.recipe.num_micro_batches = 4;
    draft.recipe.global_batch_size = 64;
    draft.cluster.accelerator.fast_link.bandwidth = BytesPerSecond::new(1e8);
    draft.cluster.accelerator.network.bandwidth = BytesPerSecond::new(1e6);
    draft.layout.second_shards = 8;
    let all = ALL as f64;
    // Eight cards of a node at once carry less than its link.
    let (far, near) = (15.0 / 16.0 * all / 8e6, 7.0 / 8.0 * all / 1e8);
    let chunk = timed(&draft).schedule.durations.chunks[0][0];
    same(chunk.forward.get(), 2.0 * (far * 0.25 + near * 0.75));
    same(chunk.backward.get() + chunk.weight.get(), 2.0 * near + 4.0 * far);
    // With nothing overlapped all of it comes on top of the passes.
    let slow = timed(&draft).upper_bound.get();
    draft.cluster.accelerator.fast_link.bandwidth = BytesPerSecond::new(1e16);
    draft.cluster.accelerator.network.bandwidth = BytesPerSecond::new(1e14);
    let quick = timed(&draft).upper_bound.get();
    let all_batches = 4.0 * (2.0 * (far * 0.25 + near * 0.75) + 2.0 * near + 4.0 * far) * (1.0 - 1e-8);
    assert!(((slow - quick) / all_batches - 1.0).abs() < 1e-9, "{slow} {quick} {all_batches}");
}

/// What hides takes an eighth of its time from the arithmetic beside it, over the network by the part of the link that it fills.
#[test]
fn hidden_weights_cost_what_their_ring_takes() {
    for (ranks, rate, share) in [(4, 1e15, 1.0), (16, 8e13, 0.08)] {
        let mut draft = replicas(ranks);
        draft.recipe.dp_sharding = DpSharding::Parameters;
        draft.recipe.num_micro_batches = 3;
        draft.recipe.global_batch_size = 3 * ranks;
        draft.cluster.accelerator.fast_link.bandwidth = BytesPerSecond::new(1e15);
        draft.cluster.accelerator.network.bandwidth = BytesPerSecond::new(1e13);
        let plan = draft.plan();
        let time = time_with(&plan, Calibration { contention: 0.125, ..whole(&plan) });
        let ring = (ranks - 1) as f64 / ranks as f64 * ALL as f64 / rate;
        same(part(&time, "data"), 3.0 * 0.125 * share * ring * (2.0 + 2.0 + 4.0));
    }
}

/// Where experts and the rest go round different rings, the one that moves more says what hiding costs; one of a single rank
/// moves nothing.
#[test]
fn the_ring_that_moves_most_says_what_hiding_costs() {
    // Sixteen ranks in two nodes: eight cards of a node at once for dense weights, one for the two replicas of an expert.
    for (expert, width, share) in [(8, 512, 0.01), (8, 128, 0.08), (16, 1024, 0.08)] {
        let mut draft = replicas(16);
        draft.recipe.dp_sharding = DpSharding::Parameters;
        draft.layout.expert = expert;
        draft.layout.expert_data = 16 / expert;
        draft.model.experts = Some(routed(16, width));
        draft.cluster.accelerator.fast_link.bandwidth = BytesPerSecond::new(1e15);
        draft.cluster.accelerator.network.bandwidth = BytesPerSecond::new(1e13);
        let plan = draft.plan();
        let time = time_with(&plan, Calibration { contention: 0.125, ..whole(&plan) });
        let dense = (2 * (4 * 256 * 256 + 16 * 256 + 2 * 256) + ENDS) as f64;
        let experts = (2 * 16 / expert * 3 * 256 * width) as f64;
        let apart = (16 / expert - 1) as f64 / (16 / expert) as f64;
        let rings = 15.0 / 16.0 * dense / 8e13 + apart * experts / 1e13;
        same(part(&time, "data"), 0.125 * share * rings * (2.0 + 2.0 + 4.0));
    }
}

/// `tests/record/deepspeed_buckets.py`.
const BUCKETS: &str = include_str!("../data/activations/deepspeed_buckets.tsv");

/// DeepSpeed's buffers of gradients to be reduced, which configurations size: what ZeRO-2 was recorded to make of each, and one of ZeRO-3
/// (`deepspeed/runtime/zero/stage3.py:_setup_for_real_optimizer`). They had been passed over.
#[test]
fn buckets_of_deepspeed_are_as_large_as_its_configuration_says() {
    let peak = |stage: u64, more: &str| {
        let script = "deepspeed --num_gpus 8 train.py --deepspeed ds.json --model_name_or_path Qwen/Qwen2.5-7B --bf16 True \
            --torch_dtype bfloat16 --per_device_train_batch_size 1 --gradient_accumulation_steps 1 --model_max_length 2048 \
            --gradient_checkpointing True --optim adamw_torch\n";
        let config =
            format!(r#"{{"bf16": {{"enabled": true}}, "zero_optimization": {{"stage": {stage}{more}}}}}"#);
        let source = Source::from_files([("run.sh", script), ("ds.json", config.as_str())]);
        let read = resolved(&source, &[("accelerator".to_owned(), "H100-SXM".to_owned())]);
        let plan =
            read.plan.unwrap_or_else(|| panic!("{more}: {:?} {:?}", read.diagnostics, read.not_modelled));
        memory(&plan).ranks[0].totals.peak_allocated.get()
    };
    let with = |contiguous: &str, overlap: &str, elements: &str| {
        let [contiguous, overlap] = [contiguous, overlap].map(str::to_lowercase);
        format!(
            r#", "contiguous_gradients": {contiguous}, "overlap_comm": {overlap}, "reduce_bucket_size": {elements}"#
        )
    };
    let mut compared = 0;
    for line in BUCKETS.lines().skip(1) {
        let cells: Vec<&str> = line.split('\t').collect();
        let [contiguous, overlap, elements, bytes] = cells[..] else { panic!("{line}") };
        let bytes: u64 = bytes.parse().expect("a number");
        let none = peak(2, &with(contiguous, overlap, "\"auto\""));
        assert_eq!(peak(2, &with(contiguous, overlap, elements)) - none, bytes, "{line}");
        compared += 1;
    }
    assert_eq!(compared, 8);
    for overlap in ["true", "false"] {
        let of = |elements: &str| peak(3, &with("true", overlap, elements));
        assert_eq!(of("2e8") - of("\"auto\""), 2 * 200_000_000);
        assert_eq!(of("2e8"), of("200000000.0"));
    }
}
