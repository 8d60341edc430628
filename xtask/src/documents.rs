//! Checks whether a change to the sources changes an answer: the reports of all fixtures and examples, before and
//! after.
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::process::{cargo, note, run, say, target_folder};

/// Maximum number of differing documents that are named.
const NAMED: usize = 20;

fn folder(name: &str) -> PathBuf {
    target_folder().join("documents").join(name)
}

/// Writes every document as it is now, to compare with later.
pub fn save() -> Result<()> {
    write(&folder("saved"))
}

/// Writes every document again and compares with the saved ones.
///
/// # Errors
/// If a document differs, is new or is missing.
pub fn compare() -> Result<()> {
    let (saved, now) = (folder("saved"), folder("now"));
    if !saved.is_dir() {
        bail!("nothing is saved yet: `cargo xtask documents --save` before the change");
    }
    write(&now)?;
    // From both directories: a new or missing document has no content on one side and differs.
    let names: BTreeSet<_> = listed(&saved)?.union(&listed(&now)?).cloned().collect();
    let content = |folder: &Path, name: &str| fs::read(folder.join(name)).ok();
    let differing: Vec<_> =
        names.iter().filter(|name| content(&saved, name) != content(&now, name)).collect();
    if differing.is_empty() {
        note(&format!("{} documents are equal byte for byte", names.len()));
        return Ok(());
    }
    for name in differing.iter().take(NAMED) {
        note(&format!("differs: {name}"));
    }
    bail!(
        "{} of {} documents differ; compare {} with {}",
        differing.len(),
        names.len(),
        saved.display(),
        now.display()
    )
}

fn write(folder: &Path) -> Result<()> {
    // Documents from an earlier run would hide that one is missing.
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    say("writing the documents of every fixture and example");
    let mut command = cargo(["run", "--quiet", "--package", "shardscope", "--example", "documents", "--"]);
    run(command.arg(folder))
}

fn listed(folder: &Path) -> Result<BTreeSet<String>> {
    let entries = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
}
