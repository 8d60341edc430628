//! The outcomes of launch files, format by format:
//! `cargo run -p shardscope-launch --example outcomes -- FOLDER [--each]`.
//!
//! Every folder directly below FOLDER is a format; every file below it is read by itself. With `--update ROOT` the
//! files of `tests/data/public_files.tsv` and `drawn_files.tsv` are read, which `cargo xtask public-files` fetches to
//! ROOT, and these tables and those of the guide are regenerated. The outcomes:
//!
//! | outcome | what it means |
//! |---|---|
//! | full | a plan |
//! | asked | no plan, and at most three questions whose proposals (and the name of a model, or what its checkpoint's configuration lists) make one; what an answer opens counts too |
//! | stopped | something that is not modelled is named, and the reader may go on without it |
//! | helped | no plan, and the text says what is missing: more questions, a file by its name |
//! | no way | no plan, and nothing to go on with |

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use outcome::outcome;

#[path = "../tests/outcome/mod.rs"]
mod outcome;

/// Outcomes, in the order of the table.
const OUTCOMES: [&str; 5] = ["full", "asked", "stopped", "helped", "no way"];

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let Some(folder) = words.next() else {
        eprintln!("usage: outcomes FOLDER [--each]");
        return ExitCode::from(2);
    };
    if folder == "--update" {
        return update(Path::new(&words.next().unwrap_or_default()));
    }
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

/// The lists of public files, each with its table in the guide and the column by whose cell rows are counted.
const LISTS: [(&str, &str, usize); 2] =
    [("tests/data/public_files.tsv", "outcomes.tsv", 0), ("tests/data/drawn_files.tsv", "drawn.tsv", 5)];

/// Writes the outcomes of the public files and the tables in the guide.
fn update(root: &Path) -> ExitCode {
    let all = LISTS.iter().all(|(list, guide, by)| update_one(root, list, guide, *by));
    if all { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn update_one(root: &Path, list: &str, guide: &str, by: usize) -> bool {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let list = here.join(list);
    let Ok(text) = std::fs::read_to_string(&list) else { return false };
    let mut lines = String::new();
    let mut table: BTreeMap<String, [usize; OUTCOMES.len()]> = BTreeMap::new();
    for line in text.lines() {
        let mut cells: Vec<&str> = line.split('\t').collect();
        let &[_, repository, path, _, before, ..] = cells.as_slice() else { continue };
        let now = match outcome::of_public(root, repository, path) {
            Some(now) => now,
            None => {
                eprintln!("{repository}/{path} is not at hand: {before} stays");
                before
            }
        };
        if let Some(at) = OUTCOMES.iter().position(|known| *known == now) {
            let row = cells.get(by).copied().unwrap_or_default();
            table.entry(row.to_owned()).or_default()[at] += 1;
        }
        cells[4] = now;
        lines.push_str(&cells.join("\t"));
        lines.push('\n');
    }
    let mut rows = String::new();
    let mut sum = [0; OUTCOMES.len()];
    for (format, counts) in &table {
        rows.push_str(&row(format, *counts));
        for (sum, count) in sum.iter_mut().zip(counts) {
            *sum += count;
        }
    }
    if by == 0 {
        rows.push_str(&row("all", sum));
    }
    let written = [(list, lines), (here.join("../../pages/src/guide").join(guide), rows)];
    written.into_iter().all(|(path, text)| match std::fs::write(&path, text) {
        Ok(()) => true,
        Err(error) => {
            eprintln!("{}: {error}", path.display());
            false
        }
    })
}

fn row(format: &str, counts: [usize; OUTCOMES.len()]) -> String {
    let cells: Vec<String> = counts.iter().map(usize::to_string).collect();
    format!("{format}\t{}\t{}\n", counts.iter().sum::<usize>(), cells.join("\t"))
}

fn line(format: &str, counts: [usize; OUTCOMES.len()]) {
    let cells: Vec<String> = counts.iter().map(usize::to_string).collect();
    println!("| {format} | {} | {} |", counts.iter().sum::<usize>(), cells.join(" | "));
}

/// Every file below the subfolders of a folder, with the subfolder's name.
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
