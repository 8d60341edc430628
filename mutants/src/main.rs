//! How many mutants of the estimating code the exact tests catch: `cargo run -p mutants`.
//!
//! cargo-mutants recompiles the engine and its suite for each mutant, which takes days for all of them. Here all of them are
//! compiled into one program, each behind a switch (`switches.rs`); those that the compiler rejects are removed (`compile.rs`).
//! Then each mutant is switched on by itself: first for the pinned plans, in one process (`harness.rs`), and if none of their
//! figures changes, for the other exact tests that reach it (`programs.rs`). A mutant that no test reaches survives without
//! a run.
//!
//! `cargo run -p mutants -- SEED:COUNT` draws that many plans (`tests/suite/pinned_plans/draw.rs`; `guide` draws the guide's,
//! the path of a file takes those in it) and prints the rows of those that catch mutants which the previous run missed. Once the
//! rows are in the table, `SHARDSCOPE_PIN=1 cargo test --test suite pinned` fills in their hashes.
mod compile;
mod list;
mod programs;
mod regions;
mod report;
mod switches;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use std::time::Duration;

use anyhow::{Context, Result, ensure};

use compile::write_if_changed;
use programs::Pinned;
use report::{Found, Outcome};

/// Tests that compare exactly, one per line: modules of the suite, and crates' own tests after the name of their crate.
const EXACT: &str = include_str!("../exact.txt");

/// Stride through the list of mutants.
const STEP: u32 = 61;

/// Bounds of how long tests take that run together: those that take longer run only if no shorter one notices the mutant.
const TOOK: [Duration; 4] =
    [Duration::ZERO, Duration::from_millis(100), Duration::from_secs(1), Duration::MAX];

fn main() -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().map(Path::to_owned).unwrap_or_default();
    let work = std::env::var_os("MUTANTS_WORK").map_or_else(|| root.join("target/mutants"), PathBuf::from);
    let mutants = list::all(&root)?;
    eprintln!("{} mutants", mutants.len());
    let tree = compile::tree(&root, work.join("tree"), &mutants)?;
    let mut outcomes: BTreeMap<u32, Outcome> = BTreeMap::new();
    for mutant in mutants.iter().filter(|mutant| !tree.placed.contains(&mutant.number)) {
        let outcome = match tree.refused.get(&mutant.number) {
            Some((compile::Refused::Mutant, why)) => Outcome::new(Found::Unviable, why),
            Some((compile::Refused::Switch, why)) => Outcome::new(Found::NotSwitched, why),
            None => Outcome::new(Found::NotSwitched, "a constant, or a chain of `let`"),
        };
        outcomes.insert(mutant.number, outcome);
    }

    let pinned = tree.folder.join(compile::PINNED);
    write_if_changed(&pinned.with_file_name("mutants.rs"), include_str!("../harness.rs"))?;
    let module = std::fs::read_to_string(root.join(compile::PINNED))?;
    write_if_changed(&pinned, &format!("{module}\nmod mutants;\n"))?;
    let built = programs::build(&tree.folder)?;
    let suite = built.iter().find(|program| is_of(program, "suite")).context("no suite")?;

    if let Some(asked) = std::env::args().nth(1) {
        let wanted = report::not_caught(&work, &mutants)?;
        // A file is named from here, and read in the copy.
        let asked = std::fs::canonicalize(&asked).map_or(asked, |path| path.display().to_string());
        return programs::draw(suite, &tree.folder, &asked, &wanted);
    }

    let mut program = Pinned::new(suite, &tree.folder);
    // In strides over the list, so that the results at any time cover all crates evenly.
    let mut numbers: Vec<u32> = tree.placed.iter().copied().collect();
    numbers.sort_by_key(|number| (number % STEP, *number));
    let mut answers = File::create(work.join("answers.tsv"))?;
    for (done, number) in numbers.iter().enumerate() {
        if done % 500 == 0 {
            eprintln!("{done} before the pinned plans");
        }
        let answer = program.ask(*number)?;
        writeln!(answers, "{number}\t{answer}")?;
        outcomes.insert(*number, Outcome::read(&answer));
    }

    let mut tests = Vec::new();
    for program in &built {
        let counts = |name: &str| {
            EXACT.lines().any(|line| {
                let (of, module) = line.split_once(' ').unwrap_or((line, ""));
                is_of(program, of) && name.starts_with(module) && !name.starts_with("pinned_plans")
            })
        };
        tests.extend(programs::tests(program, &tree.folder, counts)?);
    }
    eprintln!("{} other exact tests", tests.len());
    for (number, outcome) in &mut outcomes {
        if !matches!(outcome.found, Found::Survived | Found::Unmet) {
            continue;
        }
        // The slow ones come last: a program ends when the slowest of its tests does.
        for (took, program) in
            TOOK.windows(2).flat_map(|took| built.iter().map(move |program| (took, program)))
        {
            let meeting: Vec<_> = (tests.iter())
                .filter(|test| {
                    test.program == *program
                        && (took[0]..took[1]).contains(&test.took)
                        && test.meets.contains(number)
                })
                .collect();
            if !meeting.is_empty() {
                outcome.found = Found::Survived;
            }
            if let Some(answer) = programs::noticed(&meeting, *number, &tree.folder)? {
                *outcome = Outcome::read(&answer);
                break;
            }
        }
    }
    let score = report::write(&work, &mutants, &outcomes)?;
    ensure!(score >= report::LEAST, "fewer than {}% of the viable mutants are caught", report::LEAST);
    Ok(())
}

/// Whether `program` is what cargo compiled from the target `name`.
fn is_of(program: &Path, name: &str) -> bool {
    let file = program.file_name().map(|file| file.to_string_lossy().into_owned()).unwrap_or_default();
    file.rsplit_once('-').is_some_and(|(stem, _)| stem == name)
}
