//! How many layouts a search decides in a second on one core: `cargo bench --bench search`. Budget: 100,000, whatever the
//! model; the whole space of each workload, and the time until the answer that stays the best was found.

use std::time::{Duration, Instant};

use shardscope::launch::plan_from_flags;
use shardscope::search::Walk;

#[path = "../speed/src/processor.rs"]
mod processor;
#[path = "../speed/src/workloads.rs"]
#[allow(unreachable_pub, reason = "public in the crate that it is of")]
mod workloads;
use processor::processor_time;
use workloads::WORKLOADS;

fn main() {
    println!(
        "workload             decided   worked out   seconds   decided/s, of 100,000   best found after"
    );
    for (name, gpus, accelerator, flags) in WORKLOADS {
        let Ok(plan) = plan_from_flags(flags, gpus, 8, accelerator) else {
            println!("{name}: no plan");
            continue;
        };
        let (started, used) = (Instant::now(), processor_time());
        let took = || match (used, processor_time()) {
            (Some(before), Some(after)) => after.saturating_sub(before),
            _ => started.elapsed(),
        };
        let mut walk = Walk::new(&plan);
        let (mut best, mut found) = (None, Duration::ZERO);
        while walk.step(16) {
            let first = walk.best().first().map(|one| one.step.get());
            if first != best {
                (best, found) = (first, took());
            }
        }
        let all = took().as_secs_f64();
        let decided = walk.tally().decided();
        println!(
            "{name:16} {decided:>11} {:>12} {all:>9.2} {:>23.0} {:>16.2} s",
            walk.tally().estimated,
            real(decided) / all,
            found.as_secs_f64()
        );
    }
}

#[allow(clippy::cast_precision_loss)]
fn real(count: u64) -> f64 {
    count as f64
}
