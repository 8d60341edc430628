//! How many events of a pipeline are timed in a second: `cargo bench --bench schedule`. Budget: 20 million on one core,
//! whatever the size of the pipeline. Beside it the same by sweeping over all stages until nothing moves.
#![allow(clippy::expect_used, clippy::unwrap_used)]

#[path = "../speed/src/processor.rs"]
mod processor;
#[path = "../tests/suite/sweeping.rs"]
mod sweeping;

use std::hint::black_box;
use std::time::{Duration, Instant};

use shardscope::plan::PipelineSchedule;
use shardscope::schedule::{ChunkTime, Order, Shape, StageDurations, elapsed};
use shardscope::units::Seconds;

use processor::processor_time;

/// Kind, stages, chunks, micro-batches.
const SHAPES: [(PipelineSchedule, u32, u32, u32); 8] = [
    (PipelineSchedule::OneForwardOneBackward, 8, 1, 256),
    (PipelineSchedule::OneForwardOneBackward, 16, 4, 256),
    (PipelineSchedule::ZeroBubbleH1, 16, 1, 256),
    (PipelineSchedule::ZeroBubbleV, 16, 2, 256),
    (PipelineSchedule::DualPipe, 16, 2, 256),
    (PipelineSchedule::OneForwardOneBackward, 64, 1, 2048),
    (PipelineSchedule::OneForwardOneBackward, 256, 1, 1024),
    (PipelineSchedule::OneForwardOneBackward, 512, 1, 1024),
];

/// Least time of a round: what the clock tells is true to some milliseconds.
const ROUND: Duration = Duration::from_millis(60);

/// The time of a call: of three rounds of many calls the fastest, since what is slower was slowed by others.
fn best(mut call: impl FnMut()) -> Duration {
    let mut round = |turns: u32| {
        let (started, used) = (Instant::now(), processor_time());
        (0..turns).for_each(|_| call());
        match (used, processor_time()) {
            (Some(before), Some(after)) => after.saturating_sub(before),
            _ => started.elapsed(),
        }
    };
    let mut turns = 1;
    while round(turns) < ROUND {
        turns *= 2;
    }
    (0..3).map(|_| round(turns)).min().unwrap_or_default() / turns
}

#[allow(clippy::cast_precision_loss)]
fn rate(events: usize, time: Duration) -> f64 {
    events as f64 / time.as_secs_f64().max(1e-9) / 1e6
}

fn main() {
    println!("millions of events a second          by events, of 20   laid out too   by sweeping   events");
    for (kind, stages, chunks, micro_batches) in SHAPES {
        let shape = Shape {
            kind,
            stages,
            chunks,
            group: stages,
            micro_batches,
            extra_warmup: false,
            all_warmup_when_few: false,
        }
        .settled();
        let pass =
            ChunkTime { forward: Seconds::new(1.0), backward: Seconds::new(1.2), weight: Seconds::new(0.8) };
        let durations = StageDurations::even(&shape, pass, Seconds::new(0.05));
        let order = Order::new(shape);
        let events = order.len();
        let run = best(|| drop(black_box(elapsed(&order, [&durations]))));
        let whole = best(|| drop(black_box(elapsed(&Order::new(shape), [&durations]))));
        let swept = best(|| drop(black_box(sweeping::sweep(&order, &durations))));
        println!(
            "{:8} p {stages:4} v {chunks} m {micro_batches:5} {:>22.1} {:>14.1} {:>13.1} {:>8}",
            kind.name(),
            rate(events, run),
            rate(events, whole),
            rate(events, swept),
            events,
        );
    }
}
