//! Weights sharded over replicas: what every micro-batch waits for, computed by hand.

use shardscope::estimate::compute::Calibration;
use shardscope::estimate::memory;
use shardscope::estimate::time::time_with;
use shardscope::plan::DpSharding;
use shardscope::source::Source;
use shardscope::units::BytesPerSecond;

use super::epilogue::{ALL, ENDS, part, replicas, routed, same, timed, whole};
use super::formats::resolved;

/// Sharded weights are gathered for both passes of every micro-batch and their gradients scattered: communication
/// longer than its pass determines the time.
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
    // A pass takes as long as its messages.
    same(chunk.forward.get(), ring * 2.0);
    same(chunk.backward.get() + chunk.weight.get(), ring * (2.0 + 4.0));
    draft.cluster.accelerator.fast_link.bandwidth = BytesPerSecond::new(1e15);
    let quick = timed(&draft);
    assert_eq!(part(&quick, "data"), 0.0);
    let free = quick.schedule.durations.chunks[0][0];
    let passes = free.forward.get() + free.backward.get() + free.weight.get();
    same(part(&slow, "data"), 3.0 * (ring * 8.0 - passes));
    // Without overlap: in addition to the passes.
    same(slow.upper_bound.get() - quick.upper_bound.get(), 3.0 * ring * 8.0 * (1.0 - 1e-7));
}

/// Second shards within each node of eight: weights come over the network for the first of four forward passes, and
/// from within the node afterwards.
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
    // The eight network cards of a node together are slower than its link.
    let (far, near) = (15.0 / 16.0 * all / 8e6, 7.0 / 8.0 * all / 1e8);
    let chunk = timed(&draft).schedule.durations.chunks[0][0];
    same(chunk.forward.get(), 2.0 * (far * 0.25 + near * 0.75));
    same(chunk.backward.get() + chunk.weight.get(), 2.0 * near + 4.0 * far);
    // Without overlap all of it is added to the passes.
    let slow = timed(&draft).upper_bound.get();
    draft.cluster.accelerator.fast_link.bandwidth = BytesPerSecond::new(1e16);
    draft.cluster.accelerator.network.bandwidth = BytesPerSecond::new(1e14);
    let quick = timed(&draft).upper_bound.get();
    let all_batches = 4.0 * (2.0 * (far * 0.25 + near * 0.75) + 2.0 * near + 4.0 * far) * (1.0 - 1e-8);
    assert!(((slow - quick) / all_batches - 1.0).abs() < 1e-9, "{slow} {quick} {all_batches}");
}

/// Hidden communication slows down concurrent arithmetic by an eighth of its time, over the network in proportion to
/// the used fraction of the link.
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

/// If experts and the other weights use different rings, the one that moves more determines the cost of hiding; a ring
/// with a single rank moves nothing.
#[test]
fn the_ring_that_moves_most_says_what_hiding_costs() {
    // Sixteen ranks in two nodes: the eight network cards of a node together for dense weights, one for the two
    // replicas of an expert.
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

/// Bytes allocated at the peak of a Trainer run of Qwen2.5 7B, with `files` in addition.
fn peak_beside(files: &[(&str, &str)], launcher: &str, more: &str) -> u64 {
    let script = format!(
        "{launcher} train.py --model_name_or_path Qwen/Qwen2.5-7B --bf16 True --torch_dtype bfloat16 --per_device_train_batch_size 1 \
         --gradient_accumulation_steps 1 --model_max_length 16384 --gradient_checkpointing True {more}\n"
    );
    let all: Vec<(&str, &str)> =
        [("run.sh", script.as_str())].into_iter().chain(files.iter().copied()).collect();
    let read = resolved(&Source::from_files(all), &[("accelerator".to_owned(), "H100-SXM".to_owned())]);
    let plan =
        read.plan.unwrap_or_else(|| panic!("{files:?}: {:?} {:?}", read.diagnostics, read.not_modelled));
    memory(&plan).ranks[0].totals.peak_allocated.get()
}

/// The same under DeepSpeed's configuration of a stage, with the keys in `more`.
fn peak_of_stage(stage: u64, more: &str) -> u64 {
    let config =
        format!(r#"{{"bf16": {{"enabled": true}}, "zero_optimization": {{"stage": {stage}{more}}}}}"#);
    peak_beside(&[("ds.json", config.as_str())], "deepspeed --num_gpus 8", "--deepspeed ds.json")
}

const NOT_CONTIGUOUS: &str = r#", "contiguous_gradients": false"#;

/// DeepSpeed's gradient reduction buffers, whose sizes are configurable: what ZeRO-1 and 2 were recorded to allocate
/// for each, and one for ZeRO-3 (`deepspeed/runtime/zero/stage3.py:_setup_for_real_optimizer`). They were formerly not
/// counted.
#[test]
fn buckets_of_deepspeed_are_as_large_as_its_configuration_says() {
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
        for stage in [1, 2] {
            let none = peak_of_stage(stage, &with("False", overlap, "5e8"));
            let some = peak_of_stage(stage, &with(contiguous, overlap, elements));
            assert_eq!(some - none, bytes, "ZeRO-{stage} {line}");
        }
        compared += 1;
    }
    assert_eq!(compared, 8);
    for overlap in ["true", "false"] {
        let of = |elements: &str| peak_of_stage(3, &with("true", overlap, elements));
        assert_eq!(of("2e8") - peak_of_stage(3, NOT_CONTIGUOUS), 2 * 200_000_000);
        assert_eq!(of("2e8"), of("200000000.0"));
    }
}

/// The default size is DeepSpeed's own, 5e8 elements, and "auto" is the square of the width
/// (`transformers/integrations/deepspeed.py:trainer_config_finalize`). Neither was formerly counted, 1 or 2 GB of a
/// peak.
#[test]
fn buckets_of_deepspeed_that_nobody_sized_are_its_own() {
    let buffers = |stage: u64, more: &str| peak_of_stage(stage, more) - peak_of_stage(stage, NOT_CONTIGUOUS);
    const SQUARE: u64 = 3584 * 3584;
    for (stage, more, elements) in [
        (1, "", 500_000_000),
        (2, "", 500_000_000),
        (3, "", 500_000_000),
        (1, r#", "overlap_comm": true"#, 1_000_000_000),
        (2, r#", "overlap_comm": true"#, 1_000_000_000),
        (3, r#", "overlap_comm": true"#, 500_000_000),
        (2, r#", "reduce_bucket_size": "auto""#, SQUARE),
        (2, r#", "overlap_comm": true, "reduce_bucket_size": "auto""#, 2 * SQUARE),
        (3, r#", "overlap_comm": true, "reduce_bucket_size": "auto""#, SQUARE),
    ] {
        assert_eq!(buffers(stage, more), 2 * elements, "ZeRO-{stage}{more}");
    }
    // accelerate's own file states none; the named files of ms-swift and XTuner have their own sizes.
    for stage in [1, 2, 3] {
        let file = format!(
            "distributed_type: DEEPSPEED\ndeepspeed_config:\n  zero_stage: {stage}\nmixed_precision: bf16\nnum_machines: 1\nnum_processes: 8\n"
        );
        let of_accelerate =
            peak_beside(&[("ds.yaml", file.as_str())], "accelerate launch --config_file ds.yaml", "");
        assert_eq!(of_accelerate, peak_of_stage(stage, ""), "ZeRO-{stage}");
    }
    for (name, stage, elements) in [
        ("zero1", 1, 200_000_000),
        ("zero2", 2, 200_000_000),
        ("zero3", 3, SQUARE),
        ("deepspeed_zero1", 1, 1_000_000_000),
        ("deepspeed_zero2", 2, 1_000_000_000),
        ("deepspeed_zero3", 3, 500_000_000),
    ] {
        let named = peak_beside(&[], "deepspeed --num_gpus 8", &format!("--deepspeed {name}"));
        assert_eq!(named - peak_of_stage(stage, NOT_CONTIGUOUS), 2 * elements, "{name}");
    }
}
