//! Fuzz targets, one after the other, each starting from the corpus it left and the repository's samples.
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::process::{cargo, command, find, note, root, run, say, timed};

/// The release of cargo-fuzz that runs the targets.
const CARGO_FUZZ: &str = "0.13.1";
/// Time limit after which an input counts as a hang, and the memory limit of a target. Units: second, MiB.
const BOUNDS: [&str; 2] = ["-timeout=20", "-rss_limit_mb=1024"];
/// Lines of a target's output that are shown if it failed.
const LAST: usize = 40;

/// Runs each target for the given number of seconds, then minimises its corpus; all targets if none is named.
///
/// libFuzzer requires a nightly compiler, which is not installed here; the user chooses it.
pub fn fuzz(seconds: u32, targets: &[String]) -> Result<()> {
    if find("cargo-fuzz").is_none() {
        timed(&format!("cargo-fuzz {CARGO_FUZZ} (compiled)"), || {
            run(&mut cargo(["install", "--quiet", "--locked", &format!("cargo-fuzz@{CARGO_FUZZ}")]))
        })?;
    }
    let folder = root().join("fuzz");
    let known = known(&folder)?;
    if let Some(other) = targets.iter().find(|target| !known.contains(target)) {
        bail!("no fuzz target {other}; there are {}", known.join(", "));
    }
    run(cargo(["run", "--quiet", "--locked", "--example", "seeds"]).current_dir(&folder))?;
    for target in if targets.is_empty() { &known } else { targets } {
        say(target);
        one(&folder, target, seconds)?;
    }
    Ok(())
}

/// The names of all targets.
fn known(folder: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder.join("fuzz_targets"))? {
        names.extend(entry?.path().file_stem().map(|name| name.to_string_lossy().into_owned()));
    }
    names.sort();
    Ok(names)
}

fn one(folder: &Path, target: &str, seconds: u32) -> Result<()> {
    let path = folder.join(format!("{target}.log"));
    let log = fs::File::create(&path)?;
    let mut fuzzed = nightly(folder);
    fuzzed.args(["run", target, "--", &format!("-max_total_time={seconds}"), "-print_final_stats=1"]);
    let status = fuzzed.args(BOUNDS).stdout(log.try_clone()?).stderr(log).status()?;
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    for line in text.lines().filter(|line| is_result(line)) {
        note(line);
    }
    // A run that ended early has failed, whatever its status.
    if !status.success() || !text.lines().any(|line| line.starts_with("Done ")) {
        let lines: Vec<&str> = text.lines().collect();
        eprintln!("{}", lines[lines.len().saturating_sub(LAST)..].join("\n"));
        bail!("{target}: {status}");
    }
    run(nightly(folder).args(["cmin", target]).stdout(Stdio::null()).stderr(fs::File::create(&path)?))
}

/// `cargo fuzz` with rustup's nightly: a cargo started for another release would not do.
fn nightly(folder: &Path) -> Command {
    let mut cargo = command("cargo");
    cargo.args(["+nightly", "fuzz"]).current_dir(folder).env_remove("RUSTUP_TOOLCHAIN");
    cargo
}

/// Whether this line of libFuzzer's output states what was run and found.
fn is_result(line: &str) -> bool {
    ["stat::number_of_executed_units", "stat::new_units_added", "SUMMARY"]
        .iter()
        .any(|start| line.starts_with(start))
        || line.contains("DONE")
        || line.contains("panicked")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_the_folder_is_a_target() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("fuzz_targets")).unwrap();
        for name in ["texts.rs", "links.rs"] {
            fs::write(folder.path().join("fuzz_targets").join(name), "").unwrap();
        }
        assert_eq!(known(folder.path()).unwrap(), ["links", "texts"]);
    }

    #[test]
    fn what_was_run_and_found_is_shown() {
        assert!(is_result("stat::number_of_executed_units: 1048576"));
        assert!(is_result("#1048576\tDONE   cov: 100 ft: 200"));
        assert!(is_result("SUMMARY: libFuzzer: deadly signal"));
        assert!(!is_result("#2\tINITED cov: 100"));
    }
}
