//! How long searches over full spaces take, pair by pair, in seconds of one core:
//! `cargo run --release -p shardscope-search --example whole -- [part of a name] [exhaust] [--record]`. With
//! `exhaust` every layout is estimated too, and the two answers are shown side by side. With `--record` the pairs are
//! written into the guide's table of layouts, next to the layouts that were run; earlier results of trying everything
//! stay there unless it is tried again. With `--columns` one line of columns is printed for each pair:
//! `cargo xtask search-speed` compares those of this machine with those of WebAssembly.

#![allow(clippy::expect_used, reason = "a tool that cannot go on should stop")]

use pairs::published::{PUBLISHED, published};
use shardscope_estimate::time::exact_step_seconds;
use shardscope_estimate::{Verdict, memory_totals};
use shardscope_plan::{Field, Plan};
use shardscope_search::{Outcome, Space, Walk, exhaust};

#[path = "../tests/pairs/mod.rs"]
#[allow(unreachable_pub, reason = "shared with the tests")]
mod pairs;

/// Processor time of the main thread, if the system provides it (Linux), so that other programs do not count. Unit:
/// second.
fn seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    text.split_whitespace().next().and_then(|spent| spent.parse::<f64>().ok()).unwrap_or_default() / 1e9
}

/// Searches that take longer than this are aborted. Unit: second.
const PATIENCE: f64 = 120.0;

/// The guide's table of layouts.
const TABLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../pages/src/guide/layouts.tsv");
/// Its columns: model and cluster, published layout, its step, the step found by the search, the best of all tried,
/// how many were tried, how many of them fit, what the found layout changes.
type Row = [String; 8];

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let has = |word: &str| words.iter().any(|other| other == word);
    let (all, record, columns) = (has("exhaust"), has("--record"), has("--columns"));
    let part = words.iter().find(|word| *word != "exhaust" && !word.starts_with("--"));
    let part = part.cloned().unwrap_or_default();
    for name in pairs::NAMES.into_iter().filter(|name| name.contains(&part)) {
        let plan = pairs::plan(name);
        let course = Course::from_plan(&plan);
        if columns {
            println!("{name}\t{}", course.columns());
        } else {
            println!("{name}: {}", course.line());
        }
        let best = course.walk.best().first();
        let mut row = published_row(name, &plan);
        row[3] = shown(best);
        row[7] = best.map(|one| words_of(&one.changes)).unwrap_or_default();
        if all {
            let begun = seconds();
            let everything = exhaust(&Space::from_plan(&plan));
            let fastest = everything.best.as_ref();
            assert_eq!(fastest.map(|one| one.step), best.map(|one| one.step), "{name}");
            row[4] = shown(fastest);
            row[5] = everything.tally.decided().to_string();
            row[6] = everything.tally.estimated.to_string();
            println!("    everything: {:?}, {:.0} s", &row[4..7], seconds() - begun);
        }
        if record {
            write(&row, all);
        }
    }
}

/// The course of a search. Unit of times: second.
struct Course {
    walk: Walk,
    /// Each time the fastest layout that leaves the headroom free improved, with its step.
    better: Vec<(f64, f64)>,
    /// When all layouts were decided.
    took: f64,
}

/// A step within this factor of the best counts as a good answer.
const GOOD: f64 = 1.05;

impl Course {
    fn from_plan(plan: &Plan) -> Self {
        let begun = seconds();
        let mut walk = Walk::new(plan);
        let mut better: Vec<(f64, f64)> = Vec::new();
        loop {
            let goes_on = walk.step(1);
            let now = walk.best().first().map(|one| one.step.get());
            if let Some(now) = now.filter(|now| better.last().is_none_or(|(_, step)| now < step)) {
                better.push((seconds() - begun, now));
            }
            if !goes_on {
                break;
            }
            if seconds() - begun > PATIENCE {
                println!("broken off at {:?}", walk.progress());
                break;
            }
        }
        Self { walk, better, took: seconds() - begun }
    }

    /// When the first layout was found that counts as a good answer.
    fn good(&self) -> Option<f64> {
        let (_, best) = self.better.last()?;
        self.better.iter().find(|(_, step)| *step <= best * GOOD).map(|(after, _)| *after)
    }

    /// Layouts decided, how many were estimated, thousands decided per second, times until a good answer and until
    /// the end, the best step, and a digest of all results.
    fn columns(&self) -> String {
        let tally = self.walk.tally();
        let good = self.good().map_or_else(|| "none fits".to_owned(), |after| format!("{after:.2}"));
        let rate = tally.decided() as f64 / self.took / 1e3;
        let best = self.better.last().map_or_else(String::new, |(_, step)| format!("{step:.4}"));
        format!(
            "{}\t{}\t{rate:.0}k\t{good}\t{:.2}\t{best}\t{:016x}",
            tally.decided(),
            tally.estimated,
            self.took,
            self.digest()
        )
    }

    /// FNV-1a of the bits of each layout's step, its peak and its changes, in order, and of the tally.
    fn digest(&self) -> u64 {
        let mut text = format!("{:?}", self.walk.tally());
        for one in self.walk.ranked().chain(self.walk.frontier()) {
            text += &format!("{:x} {} {}", one.step.get().to_bits(), one.peak.get(), words_of(&one.changes));
        }
        text.bytes()
            .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
    }

    fn line(&self) -> String {
        let tally = self.walk.tally();
        let changes = self.walk.best().first().map(|one| words_of(&one.changes)).unwrap_or_default();
        format!(
            "{} layouts in {:.2} s ({:.0}/s), a good answer after {:.2?} s; refused {}, too large {}, slower {}, worked out {}; {:?} s: \
             {changes}",
            tally.decided(),
            self.took,
            tally.decided() as f64 / self.took,
            self.good(),
            tally.refused(),
            tally.too_large,
            tally.slower,
            tally.estimated,
            self.better.last().map(|(_, step)| *step),
        )
    }
}

/// What is known about a pair before it is searched.
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

/// Writes `row` into the table, in the order of the pairs; results of trying everything stay unless it was tried
/// `again`.
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
