//! Packages of the system, of npm and of PyPI.
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, bail};

use crate::process::{command, find, note, output, run, timed, tools};

/// Node and npm, from the system's packages where they are missing.
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

/// Installs an npm package into `.tools/npm`.
pub(crate) fn npm(package: &str) -> Result<()> {
    let folder = tools().join("npm");
    fs::create_dir_all(&folder)?;
    let manifest = folder.join("package.json");
    if !manifest.is_file() {
        fs::write(manifest, "{ \"private\": true }\n")?;
    }
    let mut install = command("npm");
    install.args(["install", "--silent", "--no-audit", "--no-fund", "--save-exact", package]);
    output(install.current_dir(folder)).map(drop)
}

/// Installs packages of Debian's kind, as root or by sudo.
pub(crate) fn apt(packages: &[&str]) -> Result<()> {
    static UPDATED: AtomicBool = AtomicBool::new(false);
    if find("apt-get").is_none() {
        bail!("there is no apt-get here");
    }
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

/// Something that runs its arguments with the administrator's rights.
fn as_root() -> Result<Command> {
    let root = output(command("id").arg("-u")).is_ok_and(|id| id.trim() == "0");
    if root {
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
    output(command("python3").args(["-m", "venv", "--clear"]).arg(folder)).map(drop)
}
