//! Prints the layouts that searches around the pairs find, one per line: `cargo xtask same-everywhere` runs this
//! natively and as WebAssembly, and compares. Spaces are restricted to one stage count and micro-batch, so that an
//! unoptimized build finishes in time.

use shardscope_search::{Choices, Dimension, Outcome, Space, Values, Walk};

#[path = "../tests/pairs/mod.rs"]
#[allow(unreachable_pub, reason = "shared with the tests")]
mod pairs;

fn print_outcome(kind: &str, one: &Outcome) {
    let changes: Vec<String> =
        one.changes.iter().map(|(field, value)| format!("{}={value}", field.name())).collect();
    println!("{kind} {:016x} {} {}", one.step.get().to_bits(), one.peak.get(), changes.join(" "));
}

fn main() {
    for name in pairs::NAMES {
        let plan = pairs::plan(name);
        let stages = plan.layout().pipeline;
        let choices = Choices::default()
            .with(Dimension::Pipeline, Values::Between(stages, stages))
            .with(Dimension::MicroBatch, Values::Between(1, 1))
            .with(Dimension::Context, Values::Between(1, 2))
            .with(Dimension::ExpertTensor, Values::Stated)
            .with(Dimension::RankOrder, Values::Stated);
        let mut walk = Walk::over(Space::with(&plan, choices), 8);
        while walk.step(64) {}
        println!("{name}: {:?}", walk.tally());
        walk.ranked().for_each(|one| print_outcome("ranked", one));
        walk.frontier().iter().for_each(|one| print_outcome("frontier", one));
    }
}
