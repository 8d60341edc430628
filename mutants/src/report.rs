//! What was found, to be read.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

use anyhow::{Context, Result};

use crate::list::Mutant;

/// Of a hundred viable mutants, how many are caught at least: what was reached when it was last measured, so that it only grows.
pub(crate) const LEAST: f64 = 99.7;

/// What became of a mutant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Found {
    /// An exact test gives another figure, or panics.
    Caught,
    /// What takes much longer than without it, or never ends.
    Endless,
    /// No exact test notices, though some meet it.
    Survived,
    /// No exact test comes to where it is.
    Unmet,
    /// It stands where nothing can be switched, or its switch does not compile.
    NotSwitched,
    /// It does not compile.
    Unviable,
}

/// What became of a mutant, and by what.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) found: Found,
    by: String,
}

impl Outcome {
    pub(crate) fn new(found: Found, by: &str) -> Self {
        Self { found, by: by.to_owned() }
    }

    /// Of a word and, behind a tab, by what.
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

/// Where what became of each mutant is written.
const OUTCOMES: &str = "outcomes.tsv";

/// The mutants that the run before did not catch.
///
/// # Errors
/// Where none was before.
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

/// Writes `outcomes.tsv` into `work`, prints what was not caught and the score, and returns it: caught of a hundred viable ones.
///
/// # Errors
/// Where the file cannot be written.
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
