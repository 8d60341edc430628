//! How long searches over whole spaces take, pair by pair, in seconds of one core:
//! `cargo run --release -p shardscope-search --example whole -- [part of a name] [exhaust]`. With `exhaust` every layout is
//! worked out too, and the two answers stand beside each other.

#![allow(clippy::expect_used, reason = "a tool that cannot go on should stop")]

use shardscope_search::{Space, Walk, exhaust};
use std::time::Instant;

#[path = "../tests/pairs/mod.rs"]
#[allow(unreachable_pub, reason = "shared with the tests")]
mod pairs;

/// Time on a processor, where the system tells it (Linux): other programs do not count then. Unit: second.
fn seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split_whitespace().next().and_then(|spent| spent.parse::<f64>().ok()).unwrap_or_default() / 1e9
}

/// A search that takes longer is broken off. Unit: second.
const PATIENCE: u64 = 120;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let part = arguments.next().unwrap_or_default();
    let all = arguments.next().is_some_and(|word| word == "exhaust");
    println!(
        "pair | layouts | another that fits after | its step | the best after | all | layouts/s | worked out | best step"
    );
    for name in pairs::NAMES.into_iter().filter(|name| name.contains(&part)) {
        let plan = pairs::plan(name);
        let (started, begun) = (Instant::now(), seconds());
        let mut walk = Walk::new(&plan);
        let own = walk.best().first().map(|one| one.step.get());
        let (mut best, mut first, mut found) = (own, None, 0.0);
        while walk.step(1) {
            let now = walk.best().first().map(|one| one.step.get());
            if first.is_none() && (now != own || walk.best().len() > 1) {
                first = Some((seconds() - begun, now.unwrap_or_default()));
            }
            if now != best {
                (best, found) = (now, seconds() - begun);
            }
            if started.elapsed().as_secs() > PATIENCE {
                println!("broken off at {:?}", walk.progress());
                break;
            }
        }
        let took = seconds() - begun;
        let tally = walk.tally();
        let (first, of) = first.unwrap_or_default();
        println!(
            "{name} | {} | {first:.3} | {of:.4} | {found:.3} | {took:.2} | {:.0} | {} | {best:?}",
            tally.decided(),
            tally.decided() as f64 / took,
            tally.estimated,
        );
        let best = walk.ranked().next().map(|one| format!("{:?}", one.changes)).unwrap_or_default();
        println!(
            "    refused {}, too large {}, slower {}; {best}",
            tally.refused(),
            tally.too_large,
            tally.slower
        );
        if all {
            let found = exhaust(&Space::of(&plan));
            println!(
                "    everything: {:?} of {} layouts, {:.0} s",
                found.best.map(|one| one.step.get()),
                found.tally.decided(),
                seconds() - begun - took
            );
        }
    }
}
