//! Packages of the system, of npm and of PyPI.
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::process::{command, find, note, output, run, timed, tools};

/// Node and npm, from the system's packages if they are missing.
pub(crate) fn node(what_for: &str) -> Result<()> {
    if find("node").is_some() && find("npm").is_some() {
        return Ok(());
    }
    timed("Node and npm (system packages)", || apt(&["nodejs", "npm"])).with_context(|| {
        format!(
            "{what_for} needs Node 18 or newer: install it from https://nodejs.org or your package manager"
        )
    })
}

/// An npm package, pinned to the version that was reviewed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NpmPackage {
    /// Its name.
    pub name: &'static str,
    /// Its version.
    pub version: &'static str,
    /// The digest of its archive, as in npm's lock files.
    pub integrity: &'static str,
}

/// Installs an npm package into `.tools/npm`, without running any of its scripts; one with a different digest is
/// removed again.
pub(crate) fn npm(package: NpmPackage) -> Result<()> {
    let NpmPackage { name, version, integrity } = package;
    let folder = tools().join("npm");
    fs::create_dir_all(&folder)?;
    let manifest = folder.join("package.json");
    if !manifest.is_file() {
        fs::write(manifest, "{ \"private\": true }\n")?;
    }
    let mut install = command("npm");
    install.args(["install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts", "--save-exact"]);
    output(install.arg(format!("{name}@{version}")).current_dir(&folder))?;
    let lock = fs::read_to_string(folder.join("package-lock.json")).context("npm left no lock file")?;
    // npm checks what it fetches by the registry's digest; this is the one of the package that was reviewed.
    if locked(&lock, name)? == integrity {
        return Ok(());
    }
    fs::remove_dir_all(folder.join("node_modules").join(name))?;
    bail!("what npm has as {name} {version} is not what it was: {integrity}")
}

/// The digest of a package's archive in a lock file.
fn locked(lock: &str, name: &str) -> Result<String> {
    let lock: Value = serde_json::from_str(lock).context("the lock file is not JSON")?;
    let found = lock["packages"][format!("node_modules/{name}")]["integrity"].as_str();
    found.map(str::to_owned).with_context(|| format!("the lock file has no digest of {name}"))
}

/// Installs Debian packages, as root or with sudo.
pub(crate) fn apt(packages: &[&str]) -> Result<()> {
    static UPDATED: AtomicBool = AtomicBool::new(false);
    if find("apt-get").is_none() {
        bail!("there is no apt-get here");
    }
    // The package lists are updated once per run.
    if !UPDATED.swap(true, Ordering::Relaxed) && run(as_root()?.args(["apt-get", "-qq", "update"])).is_err() {
        note("apt-get update failed; trying with the lists at hand");
    }
    let mut install = as_root()?;
    install.args([
        "env",
        "DEBIAN_FRONTEND=noninteractive",
        "apt-get",
        "-qq",
        "-y",
        "install",
        "--no-install-recommends",
    ]);
    run(install.args(packages).stdout(Stdio::null()))
}

/// A command that runs its arguments with the administrator's rights: `env` for root, else `sudo`.
fn as_root() -> Result<Command> {
    let root = output(command("id").arg("-u")).is_ok_and(|id| id.trim() == "0");
    if root {
        // `env` runs its arguments, as sudo does.
        return Ok(command("env"));
    }
    if find("sudo").is_none() {
        bail!("this needs administrator rights, and there is no sudo");
    }
    note("needs administrator rights: sudo");
    Ok(command("sudo"))
}

/// Where the programs of PyPI's packages are.
pub(crate) fn python_programs() -> PathBuf {
    tools().join("docs/bin")
}

/// Installs a package of PyPI into the virtual environment of this checkout.
pub(crate) fn pip(package: &str) -> Result<()> {
    let pip = python_programs().join("pip");
    if !pip.is_file() && environment(&tools().join("docs")).is_err() {
        // Debian's Python leaves out what makes virtual environments
        apt(&["python3", "python3-venv"])?;
        environment(&tools().join("docs"))?;
    }
    let mut install = command(&pip.to_string_lossy());
    output(install.args(["install", "--quiet", "--disable-pip-version-check", package])).map(drop)
}

fn environment(folder: &Path) -> Result<()> {
    if find("python3").is_none() {
        bail!("there is no python3 here");
    }
    // `--clear`: an incomplete one is recreated.
    output(command("python3").args(["-m", "venv", "--clear"]).arg(folder)).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_file_says_what_was_fetched() {
        let lock = r#"{ "packages": { "": {}, "node_modules/x": { "version": "1.0.0", "integrity": "sha512-A==" } } }"#;
        assert_eq!(locked(lock, "x").unwrap(), "sha512-A==");
        assert!(locked(lock, "y").is_err());
    }
}
