//! Orders of passes, pass by pass, and their exact consequences.
//!
//! `data/torch/pipeline_orders.jsonl`: the orders of PyTorch's own ZB-V and DualPipeV, written by
//! `record/pipeline_orders.py`.

use serde_json::Value;
use shardscope::plan::{PipelineSchedule, Word};
use shardscope::schedule::{Action, ChunkTime, Order, Shape, StageDurations, timeline};
use shardscope::units::Seconds;

use super::random::Random;
use super::schedule::KINDS;

fn shape(kind: PipelineSchedule, stages: u32, chunks: u32, micro_batches: u32) -> Shape {
    let group = stages;
    Shape { kind, stages, chunks, group, micro_batches, extra_warmup: false, all_warmup_when_few: false }
        .settled()
}

/// The passes of a stage in the notation of the records.
fn written(order: &Order, stage: u32) -> String {
    let mut text = String::new();
    for event in order.events(stage) {
        let letter = match event.action {
            Action::Forward => 'F',
            Action::Backward => 'B',
            Action::BackwardInput => 'I',
            Action::WeightGradient => 'W',
        };
        text.push_str(&format!("{letter}{}.{}", event.chunk, event.micro_batch));
        text.push(if event.joined { '+' } else { ' ' });
    }
    text.trim_end().to_owned()
}

#[test]
fn folded_orders_are_pytorchs_pass_by_pass() {
    let mut compared = 0;
    for line in include_str!("../data/torch/pipeline_orders.jsonl").lines() {
        let case: Value = serde_json::from_str(line).expect("a case a line");
        let number = |key: &str| case[key].as_u64().expect("a number") as u32;
        let kind = PipelineSchedule::from_word(case["kind"].as_str().expect("a kind")).expect("a schedule");
        let order = Order::new(shape(kind, number("p"), 2, number("m")));
        for (stage, expected) in (0..).zip(case["ranks"].as_array().expect("ranks")) {
            assert_eq!(written(&order, stage), expected.as_str().expect("passes"), "{line}");
            compared += 1;
        }
    }
    assert_eq!(compared, 151);
}

/// `DualPipe` is two mirrored halves: each side works as DualPipeV does over the same number of ranks with half of the
/// micro-batches; those of the other direction are the second half.
#[test]
fn dual_pipe_is_dual_pipe_v_from_both_ends() {
    for (p, m) in [(4, 8), (4, 12), (6, 12), (8, 20)] {
        let whole = Order::new(shape(PipelineSchedule::DualPipe, p, 2, m));
        let half = Order::new(shape(PipelineSchedule::DualPipeV, p / 2, 2, m / 2));
        for stage in 0..p {
            let (mirrored, rank) = if stage < p / 2 { (0, stage) } else { (1, p - 1 - stage) };
            let expected: Vec<_> = half
                .events(rank)
                .map(|event| {
                    let chunk = event.chunk ^ mirrored;
                    (event.action, chunk, event.micro_batch + chunk * m / 2, event.joined)
                })
                .collect();
            let found: Vec<_> = whole
                .events(stage)
                .map(|event| (event.action, event.chunk, event.micro_batch, event.joined))
                .collect();
            assert_eq!(found, expected, "{p} {m} {stage}");
        }
    }
}

/// Orders of repeated blocks with equal pass times: the maximum that a stage holds, in chunks, and the length of a step
/// of 6p micro-batches in passes. `schedule.rs` checks the bounds given in the paper; these are the exact numbers.
#[test]
fn repeated_blocks_hold_and_take_what_they_did() {
    use PipelineSchedule::{OneForwardOneBackwardV, VHalf, VMin};
    let expected: [(PipelineSchedule, u32, &[u64], f64); 18] = [
        (VHalf, 2, &[4, 4], 77.0),
        (VHalf, 3, &[4, 4, 4], 115.0),
        (VHalf, 4, &[6, 6, 6, 6], 156.0),
        (VHalf, 5, &[6, 6, 6, 6, 6], 194.0),
        (VHalf, 6, &[8, 8, 8, 8, 8, 8], 235.0),
        (VHalf, 8, &[10, 10, 10, 10, 10, 10, 10, 10], 314.0),
        (VMin, 2, &[2, 4], 75.0),
        (VMin, 3, &[4, 4, 4], 117.0),
        (VMin, 4, &[4, 4, 4, 4], 155.0),
        (VMin, 5, &[4, 6, 6, 4, 6], 195.0),
        (VMin, 6, &[6, 6, 6, 6, 6, 6], 237.0),
        (VMin, 8, &[6, 8, 8, 6, 8, 8, 6, 8], 315.0),
        (OneForwardOneBackwardV, 2, &[3, 4], 79.0),
        (OneForwardOneBackwardV, 3, &[6, 5, 6], 122.0),
        (OneForwardOneBackwardV, 4, &[6, 6, 5, 6], 162.0),
        (OneForwardOneBackwardV, 5, &[7, 8, 8, 7, 8], 205.0),
        (OneForwardOneBackwardV, 6, &[10, 9, 10, 10, 9, 10], 248.0),
        (OneForwardOneBackwardV, 8, &[11, 12, 12, 11, 12, 12, 11, 12], 331.0),
    ];
    for (kind, p, most, length) in expected {
        let order = Order::new(shape(kind, p, 2, 6 * p));
        let held: Vec<u64> = (0..p).map(|stage| order.peak(stage, &[1, 1])).collect();
        let pass = Seconds::new(1.0);
        let even = ChunkTime { forward: pass, backward: pass, weight: pass };
        let durations = StageDurations::even(order.shape(), even, Seconds::ZERO);
        let total = timeline(&order, &durations).total.get();
        assert_eq!((held.as_slice(), total), (most, length), "{kind:?} {p}");
    }
}

/// The formulas for a stage's peak agree with its events, and orders have as many events as their stages.
#[test]
fn formulas_of_what_is_held_are_what_the_events_hold() {
    use PipelineSchedule::{GPipe, OneForwardOneBackward, ZeroBubbleH1, ZeroBubbleH2};
    for kind in [GPipe, OneForwardOneBackward, ZeroBubbleH1, ZeroBubbleH2] {
        for (p, chunks) in [(1, 1), (2, 1), (3, 1), (4, 1), (4, 2), (2, 3), (8, 1)] {
            for m in [1, 2, p, 4 * p] {
                if chunks > 1 && m % p != 0 {
                    continue;
                }
                let order = Order::new(shape(kind, p, chunks, m));
                let mut events = 0;
                for stage in 0..p {
                    let held = order.peak(stage, &vec![1; order.shape().chunks as usize]);
                    assert_eq!(
                        order.shape().in_flight(stage),
                        Some(held),
                        "{kind:?} {p} {chunks} {m} {stage}"
                    );
                    events += order.events(stage).count();
                }
                assert_eq!((order.len(), order.is_empty()), (events, false));
            }
        }
    }
}

/// Which schedules split the backward pass, by name.
#[test]
fn schedules_that_split_backward() {
    for kind in KINDS {
        let whole = ["1f1b", "gpipe", "1f1b-v"].contains(&kind.name());
        assert_eq!(shape(kind, 4, 2, 8).splits_backward(), !whole, "{kind:?}");
    }
}

/// Random durations in multiples of 1/64, so that sums are exact.
fn uneven(shape: &Shape, random: &mut Random) -> StageDurations {
    let mut durations = StageDurations::even(shape, ChunkTime::default(), Seconds::ZERO);
    let mut draw = || Seconds::new(random.below(128) as f64 / 64.0);
    for chunk in durations.chunks.iter_mut().flatten() {
        *chunk = ChunkTime { forward: draw(), backward: draw(), weight: draw() };
    }
    for send in &mut durations.sends {
        *send = draw();
    }
    durations
}

/// The time of a message between two stages: the link after the nearer of two neighbours, or that from the last stage
/// to the first.
fn message(durations: &StageDurations, one: u32, other: u32) -> f64 {
    match one.abs_diff(other) {
        0 => 0.0,
        1 => durations.sends[one.min(other) as usize].get(),
        _ => durations.sends[one.max(other) as usize].get(),
    }
}

/// The bound as in its proof, computed part by part: the way of a micro-batch to the nearest part of a stage, all of
/// the stage's work, and the way back.
#[test]
fn the_least_time_is_that_of_its_proof_and_of_no_run() {
    let mut random = Random::new(23);
    let mut tight = 0;
    for kind in KINDS {
        for _ in 0..60 {
            let stages = 2 * (1 + random.below(4) as u32);
            let shape =
                shape(kind, stages, 1 + random.below(3) as u32, stages * (1 + random.below(3) as u32));
            let durations = uneven(&shape, &mut random);
            let two_way = kind == PipelineSchedule::DualPipe;
            let mut parts: Vec<(u32, u32, u32)> = Vec::new();
            for stage in 0..shape.stages {
                parts.extend((0..shape.chunks).map(|chunk| (shape.part(stage, chunk), stage, chunk)));
            }
            parts.sort_unstable();
            let mut most = 0.0_f64;
            for stage in 0..shape.stages {
                let (mut work, mut there, mut back) = (0.0, f64::INFINITY, f64::INFINITY);
                for chunk in 0..shape.chunks {
                    let own = durations.chunks[stage as usize][chunk as usize];
                    let batches = f64::from(shape.micro_batches) / if two_way { 2.0 } else { 1.0 };
                    work += batches * (own.forward.get() + own.backward.get() + own.weight.get());
                    let (mut ahead, mut behind) = (0.0, 0.0);
                    for pair in parts.windows(2) {
                        if pair[0].0 < shape.part(stage, chunk) {
                            let before = durations.chunks[pair[0].1 as usize][pair[0].2 as usize];
                            let message = message(&durations, pair[0].1, pair[1].1);
                            ahead += before.forward.get() + message;
                            behind += before.backward.get() + before.weight.get() + message;
                        }
                    }
                    (there, back) = (there.min(ahead), back.min(behind));
                }
                let around =
                    if two_way { 0.0 } else { there + if shape.splits_backward() { 0.0 } else { back } };
                most = most.max(work + around);
            }
            let least = shape.least(&durations).get();
            assert!((least - most).abs() <= 2e-9 * most, "{shape:?}: {least} {most}");
            let run = timeline(&Order::new(shape), &durations);
            assert!(least <= run.total.get(), "{shape:?}: {least} above {:?}", run.total);
            tight += u32::from(run.total.get() < 1.25 * least);
            let busy: f64 = run.busy.iter().map(|busy| busy.get()).sum();
            let idle = 1.0 - busy / (run.total.get() * f64::from(shape.stages));
            assert!((run.bubble() - idle).abs() < 1e-12, "{shape:?}");
        }
    }
    assert!(tight > 100, "{tight}");
}
