//! Every figure of about a thousand plans, most of them random, as it last was: a hash of each plan's numbers by
//! section.
//!
//! This does not prove that a figure is correct, only whether it changed. Correctness is checked by recorded runs, the
//! walks and published numbers; this ensures that no expression of an estimator changes unnoticed, however rarely plans
//! reach it. So a change of this table must be justified in its commit: which figures changed, by how much, and the
//! evidence for it.
//!
//! `SHARDSCOPE_PIN=1 cargo test --test suite pinned` rewrites the hashes. `SHARDSCOPE_PIN=told` prints the figures of
//! the first plan that changed, for comparison with those of the previous version (`SHARDSCOPE_PIN_PLAN=37` those of
//! one plan). `SHARDSCOPE_DRAW=SEED:COUNT cargo test --test suite draws_more -- --ignored` draws plans that are not in
//! the table.
//!
//! Figures are exact: integers as they are, times as the bits of an f64. The standard library's `powf`, `ln`, `exp` and
//! `log2` differ between platforms, so times may differ as well; the page's WebAssembly gives the same as Linux on
//! x86-64.

mod draw;
mod figures;
mod numbers;
mod schedules;

use std::collections::BTreeSet;
use std::fmt::Write;

use shardscope::catalog;
use shardscope::launch::resolve;
use shardscope::link::{Shared, decode};
use shardscope::plan::Plan;

use super::drawn::on_all_processors;
use figures::SECTIONS;

/// The location of the table: one plan per line, with its model's name, its settings as in a link, and a hash for each
/// of [`SECTIONS`].
const TABLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/pinned/drawn.tsv");

/// Maximum number of changed plans that are reported.
const MOST_LISTED: usize = 12;

/// The plan of a row: its model in the catalog, or nothing, and its settings as in a link.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Row {
    model: String,
    link: String,
}

impl Row {
    /// The settings, with those of the model first.
    fn settings(&self) -> Vec<(String, String)> {
        let Ok(Some(Shared::Settings(own))) = decode(&format!("/1?{}", self.link)) else { return Vec::new() };
        let known = catalog::model(&self.model).map(|(_, known)| known).unwrap_or_default();
        let known = known.into_iter().map(|(field, value)| (field.name().to_owned(), value));
        let stated = |name: &str| own.iter().any(|(other, _)| other == name);
        known.filter(|(name, _)| !stated(name)).chain(own.iter().cloned()).collect()
    }

    /// Its plan, if the settings give one.
    fn plan(&self) -> Option<Plan> {
        resolve(&[], &self.settings()).plan
    }

    /// The table's line.
    fn line(&self) -> String {
        let hashes = self.plan().map_or_else(Vec::new, |plan| figures::hashes(&plan));
        let mut line = format!("{}\t{}", self.model, self.link);
        for hash in hashes {
            let _ = write!(line, "\t{hash:08x}");
        }
        line
    }
}

/// The rows of the table with their lines.
fn rows(table: &str) -> Vec<(Row, &str)> {
    let row = |line| {
        let mut columns = str::split(line, '\t');
        let (model, link) = (columns.next()?.to_owned(), columns.next()?.to_owned());
        Some((Row { model, link }, line))
    };
    table.lines().skip(1).filter_map(row).collect()
}

fn table() -> String {
    std::fs::read_to_string(TABLE).unwrap_or_default()
}

fn write(lines: impl IntoIterator<Item = String>) {
    let mut text = format!("model\tsettings\t{}\n", SECTIONS.map(|(name, _)| name).join("\t"));
    for line in lines {
        text.push_str(&line);
        text.push('\n');
    }
    std::fs::write(TABLE, text).expect("the table");
}

fn lines_of(rows: &[Row]) -> Vec<String> {
    on_all_processors(rows.len() as u64, |index| (index, rows[index as usize].line()))
        .into_iter()
        .collect::<std::collections::BTreeMap<_, _>>()
        .into_values()
        .collect()
}

/// The sections that differ between two lines, by name.
fn moved(now: &str, then: &str) -> Vec<&'static str> {
    let columns = |line: &str| line.split('\t').skip(2).map(str::to_owned).collect::<Vec<_>>();
    let (now, then) = (columns(now), columns(then));
    if now.is_empty() {
        return vec!["no plan any more"];
    }
    let differs = |index: usize| now.get(index) != then.get(index);
    SECTIONS.iter().enumerate().filter(|(index, _)| differs(*index)).map(|(_, (name, _))| *name).collect()
}

#[test]
fn no_figure_of_the_pinned_plans_moves() {
    let pinned = table();
    let (rows, then): (Vec<Row>, Vec<&str>) = rows(&pinned).into_iter().unzip();
    if let Some(index) =
        std::env::var("SHARDSCOPE_PIN_PLAN").ok().and_then(|index| index.parse::<usize>().ok())
    {
        println!("{}", figures::listed(&rows[index].plan().expect("a plan")));
        return;
    }
    let now = lines_of(&rows);
    let asked = std::env::var("SHARDSCOPE_PIN").ok();
    if asked.as_deref().is_some_and(|asked| asked != "told") {
        write(now);
        return;
    }
    let moved: Vec<_> = (now.iter().zip(&then).enumerate())
        .filter(|(_, (now, then))| now != then)
        .map(|(index, (now, then))| (index, moved(now, then).join(", ")))
        .collect();
    if let (Some("told"), Some((index, _))) = (asked.as_deref(), moved.first()) {
        println!("{}", figures::listed(&rows[*index].plan().expect("a plan")));
    }
    let mut listing = String::new();
    for (index, sections) in moved.iter().take(MOST_LISTED) {
        let _ = writeln!(listing, "plan {index}: {sections}: {} {}", rows[*index].model, rows[*index].link);
    }
    assert!(moved.is_empty(), "{} of {} plans moved; the first:\n{listing}", moved.len(), rows.len());
    assert!(rows.len() > 300, "{} plans", rows.len());
}

#[test]
#[ignore = "writes more plans into the table"]
fn draws_more() {
    let asked = std::env::var("SHARDSCOPE_DRAW").expect("SHARDSCOPE_DRAW=SEED:COUNT, guide or a file");
    let pinned = table();
    let mut all: Vec<Row> = rows(&pinned).into_iter().map(|(row, _)| row).collect();
    let known: BTreeSet<Row> = all.iter().cloned().collect();
    all.extend(draw::rows(&asked).into_iter().filter(|row| !known.contains(row)));
    write(lines_of(&all));
}
