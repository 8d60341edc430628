//! Every figure of the guide's plans, as last approved. These plans reach every formula of the engine, so that no
//! expression of an estimator changes unnoticed, whether or not there is a reference for the figure.
//!
//! If a figure changes on purpose, `SHARDSCOPE_PIN=1 cargo test --test suite pinned` rewrites the table, and the commit
//! states which figures changed and why.

use std::fmt::Write;

use shardscope::estimate::time::time;
use shardscope::estimate::traffic::traffic;
use shardscope::estimate::{flops, memory, parameters};
use shardscope::explain::Breakdown;
use shardscope::plan::Plan;
use shardscope::units::Seconds;

/// The location of the table.
const TABLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/pinned/figures.tsv");

/// Seconds with few enough digits that no reordering of a sum affects them.
fn seconds(text: &mut String, label: &str, time: Seconds) {
    let _ = write!(text, " {label}={:.8e}", time.get());
}

fn parts(text: &mut String, of: &Breakdown<Seconds>, deeper: bool) {
    for part in of.children().iter().filter(|part| part.value() > Seconds::ZERO) {
        seconds(text, &part.label().replace(' ', "_"), part.value());
        if deeper {
            parts(text, part, false);
        }
    }
}

/// The figures of a plan, one line per kind.
fn figures(name: &str, plan: &Plan) -> String {
    let mut text = String::new();
    let counted = parameters(plan);
    let _ = writeln!(text, "{name}\tparameters\t{} {}", counted.total.get(), counted.active_per_token.get());
    for (stage, rank) in memory(plan).ranks.iter().enumerate() {
        let of = &rank.totals;
        let bytes = [
            of.parameters,
            of.gradients,
            of.optimizer,
            of.activations,
            of.temporaries,
            of.peak_cached,
            of.outside,
            of.peak_reserved,
            of.peak_required,
            of.between_steps,
        ];
        let bytes = bytes.map(|bytes| bytes.get().to_string()).join(" ");
        let _ = writeln!(text, "{name}\tmemory of stage {stage}\t{bytes}");
    }
    for of in &traffic(plan).dimensions {
        let sums: Vec<String> =
            of.stages.iter().map(|totals| format!("{}x{}", totals.calls, totals.bytes.get())).collect();
        let _ = writeln!(text, "{name}\ttraffic {}\t{}", of.parallelism.name(), sums.join(" "));
    }
    let of = flops(plan);
    let _ = writeln!(text, "{name}\tFLOPs\t{:?} {:?} {:?}", of.causal, of.model, of.hardware);
    let of = time(plan);
    let mut line = String::new();
    seconds(&mut line, "step", of.step);
    seconds(&mut line, "least", of.lower_bound);
    seconds(&mut line, "most", of.upper_bound);
    parts(&mut line, &of.breakdown, true);
    let _ = writeln!(text, "{name}\ttime\t{}", line.trim_start());
    text
}

#[test]
fn every_figure_of_the_guides_plans_is_as_it_was_meant() {
    let found: String = pages::guide::plans().map(|(name, plan)| figures(name, plan)).collect();
    if std::env::var_os("SHARDSCOPE_PIN").is_some() {
        std::fs::write(TABLE, &found).expect("the table");
        return;
    }
    let pinned = std::fs::read_to_string(TABLE).expect("the table");
    let mut moved = Vec::new();
    for (now, then) in found.lines().zip(pinned.lines()).filter(|(now, then)| now != then) {
        moved.push(format!("now  {now}\nthen {then}"));
    }
    let count = moved.len();
    moved.truncate(8);
    assert!(moved.is_empty(), "{count} lines moved; the first:\n{}", moved.join("\n"));
    assert_eq!(found.lines().count(), pinned.lines().count());
}
