//! What comes of launch files, format by format: `cargo run -p shardscope-launch --example outcomes -- FOLDER [--each]`.
//!
//! Every folder directly below FOLDER is a format; every file below it is read by itself. The outcomes:
//!
//! | outcome | what it means |
//! |---|---|
//! | full | a plan |
//! | asked | no plan, and at most five questions whose proposals (and the name of a model) make one |
//! | stopped | something that is not modelled is named, and the reader may go on without it |
//! | helped | no plan, and the text says what is missing: more questions, a file by its name |
//! | no way | no plan, and nothing to go on with |

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use shardscope_bash::Environment;
use shardscope_launch::{Request, Resolution, read};
use shardscope_plan::Field;
use shardscope_source::{Code, Severity, Source};

/// More questions than that are no answer.
const FEW: usize = 5;
/// Outcomes, in the order of the table.
const OUTCOMES: [&str; 5] = ["full", "asked", "stopped", "helped", "no way"];
/// An answer to the question for the model.
const MODEL: &str = "Qwen/Qwen2.5-7B";

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let Some(folder) = words.next() else {
        eprintln!("usage: outcomes FOLDER [--each]");
        return ExitCode::from(2);
    };
    let each = words.next().is_some();
    let mut table: BTreeMap<String, [usize; OUTCOMES.len()]> = BTreeMap::new();
    for (format, file) in files(Path::new(&folder)) {
        let Ok(bytes) = std::fs::read(&file) else { continue };
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let name = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let (outcome, why) = outcome(&name, &text);
        if let Some(at) = OUTCOMES.iter().position(|known| *known == outcome) {
            table.entry(format.clone()).or_default()[at] += 1;
        }
        if each {
            println!("{outcome}\t{}\t{why}", file.display());
        }
    }
    println!("| format | files | {} |", OUTCOMES.join(" | "));
    println!("|---|---:|{}", "---:|".repeat(OUTCOMES.len()));
    let mut sum = [0; OUTCOMES.len()];
    for (format, counts) in &table {
        line(format, *counts);
        for (sum, count) in sum.iter_mut().zip(counts) {
            *sum += count;
        }
    }
    line("all", sum);
    ExitCode::SUCCESS
}

fn line(format: &str, counts: [usize; OUTCOMES.len()]) {
    let cells: Vec<String> = counts.iter().map(usize::to_string).collect();
    println!("| {format} | {} | {} |", counts.iter().sum::<usize>(), cells.join(" | "));
}

/// Every file below the folders of a folder, with the folder's name.
fn files(folder: &Path) -> Vec<(String, PathBuf)> {
    let mut out = Vec::new();
    let mut open: Vec<(String, PathBuf)> = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        open.push((entry.file_name().to_string_lossy().into_owned(), entry.path()));
    }
    while let Some((format, path)) = open.pop() {
        if path.is_dir() {
            for entry in std::fs::read_dir(&path).into_iter().flatten().flatten() {
                open.push((format.clone(), entry.path()));
            }
        } else {
            out.push((format, path));
        }
    }
    out.sort();
    out
}

fn resolved(
    name: &str,
    text: &str,
    variables: &[(String, String)],
    overrides: &[(String, String)],
) -> Resolution {
    let source = Source::from_files([(name, text)]);
    let environment = Environment { variables: variables.to_vec(), ..Environment::default() };
    read(&Request { source: &source, environment: &environment, overrides })
}

fn outcome(name: &str, text: &str) -> (&'static str, String) {
    let first = resolved(name, text, &[], &[]);
    if let Some(plan) = &first.plan {
        let marks = plan.recipe().marks.sentences().join(" ");
        return ("full", marks);
    }
    let asked: Vec<String> = first.questions.iter().map(|question| question.name.clone()).collect();
    let errors: Vec<&str> = first
        .diagnostics
        .iter()
        .filter(|said| said.severity == Severity::Error)
        .map(|said| said.message.as_str())
        .collect();
    let why = format!("asks [{}]; {}", asked.join(", "), errors.join(" // "));
    if !first.not_modelled.is_empty() {
        return ("stopped", why);
    }
    if !asked.is_empty() && asked.len() <= FEW {
        let (mut variables, mut overrides) = (Vec::new(), Vec::new());
        for question in &first.questions {
            let proposal = question.proposal.clone().unwrap_or_else(|| "1".to_owned());
            if question.name == Field::Model.name() {
                overrides.push((question.name.clone(), MODEL.to_owned()));
            } else if Field::named(&question.name).is_some() {
                overrides.push((question.name.clone(), proposal));
            } else {
                variables.push((question.name.clone(), proposal));
            }
        }
        let answered = resolved(name, text, &variables, &overrides);
        if answered.plan.is_some() {
            return ("asked", why);
        }
        let then: Vec<&str> = answered
            .diagnostics
            .iter()
            .filter(|said| said.severity == Severity::Error)
            .map(|said| said.message.as_str())
            .collect();
        return ("helped", format!("{why} THEN {}", then.join(" // ")));
    }
    let lost = [Code::NoTrainingCommand, Code::UnknownSettings];
    let shown = first.diagnostics.iter().filter(|said| said.severity == Severity::Error);
    let helped =
        shown.clone().any(|said| said.hint.is_some()) && !shown.clone().any(|said| lost.contains(&said.code));
    if helped || !asked.is_empty() { ("helped", why) } else { ("no way", why) }
}
