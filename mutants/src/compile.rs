//! The tree with switches: mutants that the compiler rejects are removed until it compiles.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::list::{Genre, Mutant, Place};
use crate::regions::Regions;
use crate::switches;

/// The crates whose mutants are listed, by folder.
pub(crate) const CRATES: [&str; 4] = ["topology", "schedule", "operators", "estimate"];

/// The file that calls the harness in the copy.
pub(crate) const PINNED: &str = "tests/suite/pinned_plans/mod.rs";

/// More rounds than were ever needed.
const MOST_ROUNDS: u32 = 60;

/// What the compiler rejects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// The mutated code itself: not a mutant that could ever run.
    Mutant,
    /// The code around it that makes it switchable.
    Switch,
}

/// A copy of the repository with switches, and why some mutants have none.
pub(crate) struct Tree {
    pub(crate) folder: PathBuf,
    pub(crate) placed: BTreeSet<u32>,
    /// The compiler's messages for those that it rejects.
    pub(crate) refused: BTreeMap<u32, (Refused, String)>,
}

/// The repository's current files, at `folder`, with `mutants` behind switches.
///
/// # Errors
/// If it does not compile for a reason other than a mutant.
pub(crate) fn tree(root: &Path, folder: PathBuf, mutants: &[Mutant]) -> Result<Tree> {
    let switched: BTreeSet<&str> = mutants.iter().map(|mutant| mutant.file.as_str()).collect();
    copy(root, &folder, &switched)?;
    let kept = folder.with_file_name("refused.tsv");
    let (mut refused, mut constant) = known(&kept, mutants);
    for round in 1..=MOST_ROUNDS {
        let left_out: BTreeSet<u32> = refused.keys().copied().collect();
        let read = |file: &str| fs::read_to_string(root.join(file)).with_context(|| file.to_owned());
        let switched = switches::place(mutants, &left_out, &constant, read)?;
        for (file, text) in &switched.files {
            write_if_changed(&folder.join(file), text)?;
        }
        let errors = check(&folder)?;
        eprintln!("round {round}: {} with a switch, {} errors", switched.placed.len(), errors.len());
        if errors.is_empty() {
            keep(&kept, mutants, &refused, &constant)?;
            return Ok(Tree { folder, placed: switched.placed, refused });
        }
        let before = (refused.len(), constant.len());
        let mut regions = BTreeMap::new();
        for error in &errors {
            constant.extend(error.wanted_constant.clone());
            for (file, place) in &error.places {
                let Some(text) = switched.files.get(file) else { continue };
                let regions = match regions.entry(file) {
                    std::collections::btree_map::Entry::Occupied(known) => known.into_mut(),
                    std::collections::btree_map::Entry::Vacant(new) => new.insert(Regions::of(text)?),
                };
                let (blamed, own) = regions.blamed(*place);
                let found = !blamed.is_empty();
                for number in if own { blamed } else { suspects(error, blamed, mutants) } {
                    let why = if own { Refused::Mutant } else { Refused::Switch };
                    refused.entry(number).or_insert_with(|| (why, error.words.clone()));
                }
                if found {
                    break;
                }
            }
        }
        if before == (refused.len(), constant.len()) {
            bail!("nothing to be taken out for: {} at {:?}", errors[0].words, errors[0].places);
        }
    }
    bail!("still refused after {MOST_ROUNDS} rounds")
}

/// Copies the files of `root` that git tracks to `folder`, with the switch as a dependency. `switched` files are
/// written in each round.
fn copy(root: &Path, folder: &Path, switched: &BTreeSet<&str>) -> Result<()> {
    let output = Command::new("git").args(["ls-files", "-z"]).current_dir(root).output().context("git")?;
    let files = String::from_utf8(output.stdout)?;
    for file in files.split_terminator('\0') {
        let (from, to) = (root.join(file), folder.join(file));
        if !from.is_file() || to.is_file() && (file == PINNED || switched.contains(file)) {
            continue;
        }
        let mut bytes = fs::read(&from).with_context(|| file.to_owned())?;
        if let Some(up) = needs_switch(file) {
            let text = String::from_utf8(bytes)?;
            let line = format!("[dependencies]\nmutant-switch = {{ path = \"{up}mutants/switch\" }}\n");
            bytes = text.replacen("[dependencies]\n", &line, 1).into_bytes();
        }
        if fs::read(&to).ok().as_ref() != Some(&bytes) {
            fs::create_dir_all(to.parent().context("a folder")?)?;
            fs::write(&to, bytes)?;
        }
    }
    Ok(())
}

/// What was rejected last time: the compiler is not asked again about a mutant with the same name.
fn known(path: &Path, mutants: &[Mutant]) -> (BTreeMap<u32, (Refused, String)>, BTreeSet<String>) {
    let numbers: BTreeMap<&str, u32> =
        mutants.iter().map(|mutant| (mutant.name.as_str(), mutant.number)).collect();
    let (mut refused, mut constant) = (BTreeMap::new(), BTreeSet::new());
    for line in fs::read_to_string(path).unwrap_or_default().lines() {
        match line.split('\t').collect::<Vec<_>>()[..] {
            ["constant", name] => {
                constant.insert(name.to_owned());
            }
            [kind, name, why] => {
                let kind = if kind == "mutant" { Refused::Mutant } else { Refused::Switch };
                refused.extend(numbers.get(name).map(|number| (*number, (kind, why.to_owned()))));
            }
            _ => {}
        }
    }
    (refused, constant)
}

fn keep(
    path: &Path,
    mutants: &[Mutant],
    refused: &BTreeMap<u32, (Refused, String)>,
    constant: &BTreeSet<String>,
) -> Result<()> {
    let mut text: String = constant.iter().map(|name| format!("constant\t{name}\n")).collect();
    for mutant in mutants {
        if let Some((kind, why)) = refused.get(&mutant.number) {
            let kind = if *kind == Refused::Mutant { "mutant" } else { "switch" };
            text.push_str(&format!("{kind}\t{}\t{}\n", mutant.name, why.replace(['\n', '\t'], " ")));
        }
    }
    write_if_changed(path, &text)
}

/// Among all mutants around an error that is inside none of them, those that are likely to cause it.
fn suspects(error: &Error, around: BTreeSet<u32>, mutants: &[Mutant]) -> BTreeSet<u32> {
    let causes: &[Genre] = if error.words.starts_with("E0004") {
        &[Genre::MatchArm, Genre::MatchArmGuard]
    } else {
        &[Genre::FnValue]
    };
    let likely =
        |number: &u32| mutants.get(*number as usize - 1).is_some_and(|mutant| causes.contains(&mutant.genre));
    let few: BTreeSet<u32> = around.iter().copied().filter(likely).collect();
    if few.is_empty() { around } else { few }
}

/// The path from the manifest `file` to the repository's root, if its crate is switched or switches.
fn needs_switch(file: &str) -> Option<&'static str> {
    let crates = CRATES.iter().any(|name| file == format!("crates/{name}/Cargo.toml"));
    if crates { Some("../../") } else { (file == "Cargo.toml").then_some("") }
}

pub(crate) fn write_if_changed(path: &Path, text: &str) -> Result<()> {
    if fs::read_to_string(path).ok().as_deref() != Some(text) {
        fs::write(path, text).with_context(|| path.display().to_string())?;
    }
    Ok(())
}

/// Cargo in the copy: without lints, of which the switched code would trigger thousands.
pub(crate) fn cargo(folder: &Path) -> Command {
    let mut command = Command::new("cargo");
    command
        .current_dir(folder)
        .env("RUSTFLAGS", "--cap-lints=warn -Awarnings")
        .env("CARGO_PROFILE_DEV_OPT_LEVEL", "1");
    command.env("CARGO_PROFILE_DEV_DEBUG", "0").env("CARGO_TARGET_DIR", folder.with_file_name("target"));
    command
}

struct Error {
    words: String,
    /// Places, the primary one first and the notes' after it.
    places: Vec<(String, Place)>,
    /// The function that a constant calls.
    wanted_constant: Option<String>,
}

fn check(folder: &Path) -> Result<Vec<Error>> {
    let packages = CRATES.map(|name| format!("--package=shardscope-{name}"));
    let output = cargo(folder)
        .args(["check", "--message-format=json", "--keep-going", "--quiet"])
        .args(packages)
        .output()
        .context("cargo check")?;
    let messages = String::from_utf8_lossy(&output.stdout);
    let errors: Vec<Error> =
        messages.lines().filter_map(|line| error(&serde_json::from_str(line).ok()?)).collect();
    ensure!(
        output.status.success() || !errors.is_empty(),
        "cargo check: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(errors)
}

fn error(message: &Value) -> Option<Error> {
    let message = message.get("message").filter(|message| message["level"] == "error")?;
    let mut places = Vec::new();
    spans(message, &mut places);
    let code = message["code"]["code"].as_str().unwrap_or_default();
    let said = message["message"].as_str()?;
    let called = said.split('`').nth(1).and_then(|path| path.rsplit("::").next()).map(str::to_owned);
    let called = called.map(|name| name.split('<').next().unwrap_or_default().to_owned());
    Some(Error {
        words: format!("{code} {said}"),
        places,
        wanted_constant: called.filter(|_| code == "E0015"),
    })
}

/// Primary spans first, then others, then those of notes.
fn spans(message: &Value, places: &mut Vec<(String, Place)>) {
    let own = message["spans"].as_array().map(Vec::as_slice).unwrap_or_default();
    let (primary, others): (Vec<&Value>, Vec<&Value>) =
        own.iter().partition(|span| span["is_primary"] == true);
    for mut span in primary.into_iter().chain(others) {
        // The call site of a macro counts, not its definition.
        while span["expansion"]["span"].is_object() {
            span = &span["expansion"]["span"];
        }
        let at = |key: &str| span[key].as_u64().and_then(|at| usize::try_from(at).ok()).unwrap_or_default();
        let file = span["file_name"].as_str().unwrap_or_default().to_owned();
        places.push((file, (at("line_start"), at("column_start"))));
    }
    for child in message["children"].as_array().into_iter().flatten() {
        spans(child, places);
    }
}
