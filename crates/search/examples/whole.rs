//! How long searches over whole spaces take, pair by pair, in seconds of one core:
//! `cargo run --release -p shardscope-search --example whole -- [part of a name] [exhaust] [--record]`. With `exhaust` every layout
//! is worked out too, and the two answers stand beside each other. With `--record` the pairs looked at are written into the guide's
//! table of layouts, beside the layouts that were run; what trying everything came to stays there where it is not tried again.

#![allow(clippy::expect_used, reason = "a tool that cannot go on should stop")]

use pairs::published::{PUBLISHED, published};
use shardscope_estimate::time::exact_step_seconds;
use shardscope_estimate::{Verdict, memory_totals};
use shardscope_plan::{Field, Plan};
use shardscope_search::{Outcome, Space, Walk, exhaust};
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

/// The guide's table of layouts.
const TABLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../pages/src/guide/layouts.tsv");
/// Its columns: model and cluster, published layout, its step, the searched one's, the best of all tried, how many were tried,
/// how many of them fit, what the searched one changes.
type Row = [String; 8];

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let (all, record) =
        (words.iter().any(|word| word == "exhaust"), words.iter().any(|word| word == "--record"));
    let part =
        words.iter().find(|word| *word != "exhaust" && *word != "--record").cloned().unwrap_or_default();
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
        let changes = walk.best().first().map(|one| words_of(&one.changes)).unwrap_or_default();
        println!(
            "    refused {}, too large {}, slower {}; {changes}",
            tally.refused(),
            tally.too_large,
            tally.slower
        );
        let mut row = published_row(name, &plan);
        row[3] = shown(walk.best().first());
        row[7] = changes;
        if all {
            let everything = exhaust(&Space::of(&plan));
            let best = everything.best.as_ref();
            assert_eq!(best.map(|one| one.step), walk.best().first().map(|one| one.step), "{name}");
            row[4] = shown(best);
            row[5] = everything.tally.decided().to_string();
            row[6] = everything.tally.estimated.to_string();
            println!("    everything: {:?}, {:.0} s", &row[4..7], seconds() - begun - took);
        }
        if record {
            write(&row, all);
        }
    }
}

/// What is known of a pair before it is searched.
fn published_row(name: &str, plan: &Plan) -> Row {
    let mut row = Row::default();
    row[0] = name.to_owned();
    if let Some((_, source)) = PUBLISHED.iter().find(|(of, _)| *of == name) {
        let ran = published(name, plan).apply(plan).expect("a published layout");
        let (capacity, headroom) = (ran.cluster().accelerator.memory, ran.recipe().headroom);
        let verdict = memory_totals(&ran).iter().map(|one| one.verdict(capacity, headroom)).max();
        let note = match verdict {
            Some(Verdict::Fits) => "",
            Some(Verdict::Tight) => " (leaves less than the headroom)",
            _ => " (out of memory here)",
        };
        row[1] = format!("{source}{note}");
        row[2] = format!("{:.3}", exact_step_seconds(&ran).get());
    }
    row
}

fn shown(one: Option<&Outcome>) -> String {
    one.map_or_else(|| "none fits".to_owned(), |one| format!("{:.3}", one.step.get()))
}

fn words_of(changes: &[(Field, String)]) -> String {
    let said: Vec<String> =
        changes.iter().map(|(field, value)| format!("{}={value}", field.name())).collect();
    said.join(" ")
}

/// Puts `row` into the table, in the order of the pairs; what trying everything came to stays where it was not tried `again`.
fn write(row: &Row, again: bool) {
    let text = std::fs::read_to_string(TABLE).unwrap_or_default();
    let mut lines: Vec<Vec<String>> =
        text.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect();
    let mut row = row.to_vec();
    if let Some(before) = lines.iter().find(|line| line[0] == row[0]).filter(|_| !again) {
        row[4..7].clone_from_slice(&before[4..7]);
    }
    lines.retain(|line| line[0] != row[0]);
    lines.push(row);
    lines.sort_by_key(|line| pairs::NAMES.iter().position(|name| *name == line[0]));
    let text: String = lines.iter().map(|line| line.join("\t") + "\n").collect();
    std::fs::write(TABLE, text).expect("the guide's folder");
}
