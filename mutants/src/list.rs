//! The mutants, as cargo-mutants lists them.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

/// Line and column, from 1.
pub(crate) type Place = (usize, usize);

/// What of the source a mutant changes.
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
    /// Its place in the list, from 1: what switches it on.
    pub(crate) number: u32,
    pub(crate) genre: Genre,
    /// What stands there instead.
    pub(crate) replacement: String,
    pub(crate) file: String,
    pub(crate) start: Place,
    /// What cargo-mutants calls it.
    pub(crate) name: String,
}

/// Every mutant that `.cargo/mutants.toml` does not leave out.
///
/// # Errors
/// Where cargo-mutants is missing, or lists what is not known here.
pub(crate) fn all(root: &Path) -> Result<Vec<Mutant>> {
    let output = Command::new("cargo")
        .args(["mutants", "--workspace", "--list", "--json"])
        .current_dir(root)
        .output()
        .context("cargo mutants: cargo install --locked cargo-mutants@27.1.0")?;
    ensure!(output.status.success(), "cargo mutants: {}", String::from_utf8_lossy(&output.stderr));
    let list: Vec<Value> = serde_json::from_slice(&output.stdout)?;
    list.iter().zip(1..).map(|(one, number)| read(one, number).with_context(|| format!("{one}"))).collect()
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
