//! Checks that the same sources give the same page, to the byte.
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use crate::fingerprint::files_below;
use crate::install::{self, For};
use crate::process::{command, note, root, run, say};

/// Builds the page twice, each time from nothing, and compares every file.
pub fn check() -> Result<()> {
    install::install(For::Page)?;
    let scratch = tempfile::tempdir_in(root().join("target"))?;
    let mut built = Vec::new();
    for turn in ["first", "second"] {
        say(&format!("building the page, the {turn} time"));
        let folder = scratch.path().join(turn);
        let mut trunk = command("trunk");
        trunk.args(["build", "--release", "--log", "error", "--dist"]).arg(folder.join("dist"));
        // everything that goes into the page is recompiled; the hooks' own programs are not part of it
        run(trunk.env("CARGO_TARGET_DIR", folder.join("target")))?;
        built.push(folder.join("dist"));
        // Its disk space is needed by the second build.
        fs::remove_dir_all(folder.join("target"))?;
    }
    let [first, second] = &built[..] else { bail!("two builds were asked for") };
    let differences = differences(first, second)?;
    if !differences.is_empty() {
        for name in &differences {
            let of = |folder: &Path| fs::read(folder.join(name)).unwrap_or_default();
            let (one, other) = (of(first), of(second));
            println!("{name}\n  first:  {}\n  second: {}", parting(&one, &other), parting(&other, &one));
        }
        bail!("two builds of the same sources differ in {}", differences.join(", "));
    }
    note("both builds are equal to the byte");
    Ok(())
}

/// Names of files that are in only one directory, or differ between them.
fn differences(one: &Path, other: &Path) -> Result<Vec<String>> {
    let (one, other) = (contents(one)?, contents(other)?);
    let names: std::collections::BTreeSet<&PathBuf> = one.keys().chain(other.keys()).collect();
    let differing = names.into_iter().filter(|name| one.get(*name) != other.get(*name));
    Ok(differing.map(|name| name.display().to_string()).collect())
}

/// `one` from shortly before it parts from `other`: the build directories are gone by the time somebody reads this.
fn parting(one: &[u8], other: &[u8]) -> String {
    let alike = one.iter().zip(other).take_while(|(one, other)| one == other).count();
    let from = alike.saturating_sub(80);
    String::from_utf8_lossy(one.get(from..(alike + 160).min(one.len())).unwrap_or_default()).into_owned()
}

fn contents(folder: &Path) -> Result<BTreeMap<PathBuf, Vec<u8>>> {
    let mut files = BTreeMap::new();
    for file in files_below(folder)? {
        files.insert(file.strip_prefix(folder)?.to_owned(), fs::read(&file)?);
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_differ_or_lack_are_named() {
        let scratch = tempfile::tempdir().unwrap();
        let (one, other) = (scratch.path().join("one"), scratch.path().join("other"));
        for (folder, files) in [
            (&one, [("same", "1"), ("differs", "2"), ("lacks", "3")]),
            (&other, [("same", "1"), ("differs", "0"), ("more", "")]),
        ] {
            fs::create_dir(folder).unwrap();
            for (name, text) in files {
                fs::write(folder.join(name), text).unwrap();
            }
        }
        assert_eq!(differences(&one, &other).unwrap(), ["differs", "lacks", "more"]);
        assert_eq!(differences(&one, &one).unwrap(), [""; 0]);
    }
}
