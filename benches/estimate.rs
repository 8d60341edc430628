//! How long estimates take: `cargo bench --bench estimate`. Budgets: a plan's memory with every number explained 0.3 ms,
//! the totals that a search asks for 10 µs, the whole report 0.5 ms.

use std::hint::black_box;
use std::time::{Duration, Instant};

use shardscope::estimate::{memory, memory_totals};
use shardscope::launch::plan_from_flags;
use shardscope::report::report;

#[path = "../speed/src/processor.rs"]
mod processor;
#[path = "../speed/src/workloads.rs"]
#[allow(unreachable_pub, reason = "public in the crate that it is of")]
mod workloads;
use processor::processor_time;
use workloads::WORKLOADS;

/// Rounds of which the fastest counts: what is slower was slowed by others on the machine.
const ROUNDS: u32 = 10;

/// The time of a call, mean over a round of `turns`.
fn time<T>(turns: u32, mut call: impl FnMut() -> T) -> Duration {
    black_box(call());
    let round = |_| {
        let (started, used) = (Instant::now(), processor_time());
        for _ in 0..turns {
            black_box(call());
        }
        let took = match (used, processor_time()) {
            (Some(before), Some(after)) => after.saturating_sub(before),
            _ => started.elapsed(),
        };
        took / turns
    };
    (0..ROUNDS).map(round).min().unwrap_or_default()
}

fn main() {
    println!("workload          memory, of 300 µs   totals, of 10 µs   report, of 500 µs");
    for (name, gpus, accelerator, flags) in WORKLOADS {
        let Ok(plan) = plan_from_flags(flags, gpus, 8, accelerator) else {
            println!("{name}: no plan");
            continue;
        };
        let full = time(2000, || memory(&plan));
        let totals = time(20_000, || memory_totals(&plan));
        let whole = time(400, || report(&plan));
        println!(
            "{name:16} {:>17.1} µs {:>15.2} µs {:>16.1} µs",
            micros(full),
            micros(totals),
            micros(whole)
        );
    }
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}
