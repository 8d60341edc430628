//! Orders of a plan's micro-batches, what stages hold, and when every event begins and ends.

use shardscope::plan::{PipelineSchedule, Plan};
use shardscope::schedule::{ChunkTime, Order, Rehearsal, Shape, StageDurations, timeline, totals};
use shardscope::units::Seconds;

use super::super::schedule::KINDS;
use super::numbers::Numbers;

/// Maximum number of stages for which every order is recorded.
const MOST_STAGES: u32 = 4;

/// Maximum micro-batches of an order that is recorded in full.
const WRITTEN: u32 = 24;

pub(super) fn schedule(to: &mut Numbers, plan: &Plan) {
    let shape = Shape::from_plan(plan);
    to.add("shape", &(shape, shape.placement(), shape.parts(), shape.splits_backward(), shape.steps()));
    let even =
        ChunkTime { forward: Seconds::new(1.0), backward: Seconds::new(1.25), weight: Seconds::new(0.75) };
    let mut uneven = StageDurations::even(&shape, even, Seconds::new(0.125));
    for (stage, send) in (0_u32..).zip(&mut uneven.sends) {
        *send = Seconds::new(0.125 * f64::from(1 + stage % 3));
    }
    for (stage, chunks) in (0_u32..).zip(&mut uneven.chunks) {
        for (chunk, time) in (0_u32..).zip(chunks) {
            let factor = 1.0 + f64::from((7 * stage + 3 * chunk) % 5) / 8.0;
            time.forward = Seconds::new(factor);
            time.backward = Seconds::new(1.5 * factor);
        }
    }
    for stage in 0..shape.stages {
        to.add("stage", &(shape.warmup(stage), shape.in_flight(stage)));
        for chunk in 0..shape.chunks {
            let part = shape.part(stage, chunk);
            to.add("part", &(part, shape.holder(part, 0), shape.holder(part, 1)));
        }
    }
    for rehearsal in [Rehearsal::new(shape), Rehearsal::quick(shape, 5), Rehearsal::quick(shape, 2)] {
        to.add("rehearsal", &(rehearsal.micro_batches(), rehearsal.is_exact(), rehearsal.totals([&uneven])));
    }
    let blocking = StageDurations { blocking: true, ..uneven.clone() };
    to.add("least", &(shape.least(&uneven), shape.least(&blocking)));
    let short = Shape { micro_batches: shape.micro_batches.min(WRITTEN), ..shape };
    let order = Order::new(short);
    for stage in 0..order.shape().stages {
        let ones = vec![1; order.shape().chunks as usize];
        let events: Vec<_> = order.events(stage).collect();
        to.add("order", &(events, order.peak(stage, &ones), order.fullest(stage)));
    }
    for durations in [&uneven, &blocking] {
        let line = timeline(&order, durations);
        to.add("line", &(line.bubble(), order.len(), order.is_empty(), line));
    }
    others(to, shape, &uneven);
}

/// Shapes other than the plan's: more micro-batches than are simulated one by one, and every order over its stages.
fn others(to: &mut Numbers, shape: Shape, durations: &StageDurations) {
    for micro_batches in [3, 17, 64, 1000, 50_000, 3_000_000] {
        let shape = Shape { micro_batches: micro_batches * shape.group.max(1), ..shape };
        for rehearsal in [Rehearsal::new(shape), Rehearsal::quick(shape, 3), Rehearsal::quick(shape, 8)] {
            to.add("continued", &(rehearsal.micro_batches(), rehearsal.is_exact()));
        }
    }
    // Group sizes that do not divide the stages, and micro-batches that do not fill them.
    for (chunks, group) in [(1, 1), (2, 3), (2, 5), (3, 7)] {
        for micro_batches in [97, 1003, 3_000_001] {
            let kind = PipelineSchedule::OneForwardOneBackward;
            let shape = Shape { kind, chunks, group, micro_batches, ..shape };
            for rehearsal in [Rehearsal::new(shape), Rehearsal::quick(shape, 3)] {
                to.add("in groups", &(rehearsal.micro_batches(), rehearsal.is_exact()));
            }
        }
    }
    if shape.stages > MOST_STAGES || !shape.stages.is_multiple_of(2) {
        return;
    }
    for kind in KINDS {
        let micro_batches = 2 * shape.stages + 2;
        let shape = Shape { kind, micro_batches, group: shape.stages, ..shape }.settled();
        let order = Order::new(shape);
        for stage in 0..shape.stages {
            to.add(
                "events",
                &(order.events(stage).collect::<Vec<_>>(), order.fullest(stage), shape.in_flight(stage)),
            );
        }
        if shape.chunks as usize == durations.chunks[0].len() {
            to.add("least", &(shape.least(durations), totals(shape, durations)));
        }
    }
}
