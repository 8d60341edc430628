//! The results as a readable report.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

use anyhow::{Context, Result};

use crate::list::Mutant;

/// The fewest of a hundred viable mutants to catch: the score at the last measurement, so that it only grows.
pub(crate) const LEAST: f64 = 99.7;

/// What became of a mutant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Found {
    /// An exact test gives another figure, or panics.
    Caught,
    /// A run takes much longer than without it, or never ends.
    Endless,
    /// No exact test notices it, though some reach it.
    Survived,
    /// No exact test reaches it.
    Unmet,
    /// Nothing can be switched where it is, or its switch does not compile.
    NotSwitched,
    /// It does not compile.
    Unviable,
}

/// What became of a mutant, and the test or plan that decided it.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) found: Found,
    by: String,
}

impl Outcome {
    pub(crate) fn new(found: Found, by: &str) -> Self {
        Self { found, by: by.to_owned() }
    }

    /// Parses a word and, after a tab, the test or plan.
    pub(crate) fn read(answer: &str) -> Self {
        let (word, by) = answer.split_once('\t').unwrap_or((answer, ""));
        let found = match word {
            "survived" => Found::Survived,
            "unmet" => Found::Unmet,
            "endless" => Found::Endless,
            _ => Found::Caught,
        };
        Self { found, by: format!("{word} {by}") }
    }
}

/// The file to which each mutant's outcome is written.
const OUTCOMES: &str = "outcomes.tsv";

/// The mutants that the previous run did not catch.
///
/// # Errors
/// If there was no previous run.
pub(crate) fn not_caught(work: &Path, mutants: &[Mutant]) -> Result<BTreeSet<u32>> {
    let text = std::fs::read_to_string(work.join(OUTCOMES)).context("no run before")?;
    let (survived, unmet) = (format!("{:?}\t", Found::Survived), format!("{:?}\t", Found::Unmet));
    let names: BTreeSet<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix(&survived).or_else(|| line.strip_prefix(&unmet)))
        .filter_map(|line| line.split('\t').next())
        .collect();
    Ok(mutants
        .iter()
        .filter(|mutant| names.contains(mutant.name.as_str()))
        .map(|mutant| mutant.number)
        .collect())
}

/// Writes `outcomes.tsv` into `work`, prints the mutants not caught, and prints and returns the score: caught per hundred viable.
///
/// # Errors
/// If the file cannot be written.
pub(crate) fn write(work: &Path, mutants: &[Mutant], outcomes: &BTreeMap<u32, Outcome>) -> Result<f64> {
    let mut text = String::from("found\tmutant\tby\n");
    let mut counts: BTreeMap<Found, u32> = BTreeMap::new();
    for (mutant, outcome) in mutants.iter().zip(outcomes.values()) {
        let found = outcome.found;
        *counts.entry(found).or_default() += 1;
        let _ = writeln!(text, "{found:?}\t{}\t{}", mutant.name, outcome.by);
        if matches!(found, Found::Survived | Found::Unmet | Found::NotSwitched) {
            println!("{found:?}: {} ({})", mutant.name, outcome.by);
        }
    }
    std::fs::write(work.join(OUTCOMES), text)?;
    let count = |found| f64::from(counts.get(&found).copied().unwrap_or_default());
    let caught = count(Found::Caught) + count(Found::Endless);
    let score = 100.0 * caught / (caught + count(Found::Survived) + count(Found::Unmet));
    println!(
        "{} mutants: {counts:?}; {score:.2}% of the viable ones that could be switched are caught",
        mutants.len()
    );
    Ok(score)
}
