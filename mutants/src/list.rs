//! The mutants, as cargo-mutants lists them.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use regex::RegexSet;
use serde_json::Value;

/// Line and column, from 1.
pub(crate) type Place = (usize, usize);

/// The part of the source that a mutant changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Genre {
    FnValue,
    BinaryOperator,
    UnaryOperator,
    MatchArm,
    MatchArmGuard,
    StructField,
}

/// One change of one expression.
#[derive(Clone, Debug)]
pub(crate) struct Mutant {
    /// Its position in the list, from 1: the number that switches it on.
    pub(crate) number: u32,
    pub(crate) genre: Genre,
    /// The code that replaces it.
    pub(crate) replacement: String,
    pub(crate) file: String,
    pub(crate) start: Place,
    /// The name that cargo-mutants gives it.
    pub(crate) name: String,
}

/// cargo-mutants' configuration.
const CONFIGURATION: &str = ".cargo/mutants.toml";

/// Every mutant that `.cargo/mutants.toml` does not exclude. cargo-mutants 27.1 does not apply the exclusions to deleted
/// fields (`visit.rs:visit_expr_struct`), so they are applied again here.
///
/// # Errors
/// If cargo-mutants is missing or lists a mutant of an unknown kind.
pub(crate) fn all(root: &Path) -> Result<Vec<Mutant>> {
    let output = Command::new("cargo")
        .args(["mutants", "--workspace", "--list", "--json"])
        .current_dir(root)
        .output()
        .context("cargo mutants: cargo install --locked cargo-mutants@27.1.0")?;
    ensure!(output.status.success(), "cargo mutants: {}", String::from_utf8_lossy(&output.stderr));
    let list: Vec<Value> = serde_json::from_slice(&output.stdout)?;
    let left_out = left_out(&std::fs::read_to_string(root.join(CONFIGURATION)).context(CONFIGURATION)?)?;
    let stays = |one: &&Value| !left_out.is_match(one["name"].as_str().unwrap_or_default());
    let numbered = list.iter().filter(stays).zip(1..);
    numbered.map(|(one, number)| read(one, number).with_context(|| format!("{one}"))).collect()
}

/// The names that a configuration excludes.
///
/// # Errors
/// If it is not a valid configuration.
pub(crate) fn left_out(configuration: &str) -> Result<RegexSet> {
    let table: toml::Table = configuration.parse()?;
    let all = table.get("exclude_re").and_then(toml::Value::as_array).into_iter().flatten();
    Ok(RegexSet::new(all.filter_map(toml::Value::as_str))?)
}

fn read(one: &Value, number: u32) -> Result<Mutant> {
    let text = |key: &str| one[key].as_str().map(str::to_owned).unwrap_or_default();
    let genre = match one["genre"].as_str().unwrap_or_default() {
        "FnValue" => Genre::FnValue,
        "BinaryOperator" => Genre::BinaryOperator,
        "UnaryOperator" => Genre::UnaryOperator,
        "MatchArm" => Genre::MatchArm,
        "MatchArmGuard" => Genre::MatchArmGuard,
        "StructField" => Genre::StructField,
        other => anyhow::bail!("a genre that has no switch: {other}"),
    };
    let at = |key: &str| one["span"]["start"][key].as_u64().and_then(|at| usize::try_from(at).ok());
    let start = (at("line").context("no line")?, at("column").context("no column")?);
    Ok(Mutant {
        number,
        genre,
        replacement: text("replacement"),
        file: text("file"),
        start,
        name: text("name"),
    })
}
