//! Installs what building and testing the page require and this machine lacks, and reports it.
//!
//! What already exists in a suitable version is used. Everything else goes into `.tools/` of this checkout, except
//! the wasm32 target, which belongs to the Rust toolchain, and packages of the system's own package manager. A tool
//! that is published as a binary is downloaded; if that is not available it is compiled.
pub(crate) mod programs;

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::ValueEnum;

use crate::packages::{NpmPackage, node, npm};
use crate::process::{command, find, output, root, timed};
use crate::{browser, docs_tools};

/// The target of the page.
pub const WASM: &str = "wasm32-unknown-unknown";
/// The newest that Rust 1.95 can build.
const TRUNK: &str = "0.21.14";
/// Older ones reject the output of rustc 1.95.
const BINARYEN: &str = "132";
/// Accessibility rules.
const AXE: NpmPackage = NpmPackage {
    name: "axe-core",
    version: "4.14.1",
    integrity: "sha512-FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ==",
};

/// What things are installed for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum For {
    /// Building the page: the wasm32 target, Trunk, wasm-bindgen, wasm-opt
    Page,
    /// The JavaScript package: Node and npm
    Node,
    /// The browser tests: the above, browsers and their drivers, axe-core, documentation tools
    Tests,
    /// The example for Docusaurus, of which the browser tests look where it is there
    Docusaurus,
}

/// Installs what is missing.
pub fn install(what: For) -> Result<()> {
    match what {
        For::Page => page(),
        For::Node => node("the test of the JavaScript package"),
        For::Tests => page().and_then(|()| tests()),
        For::Docusaurus => docs_tools::install_docusaurus(),
    }
}

fn page() -> Result<()> {
    target()?;
    programs::wasm_bindgen(&wasm_bindgen_version()?)?;
    programs::trunk(TRUNK)?;
    programs::wasm_opt(BINARYEN)
}

fn tests() -> Result<()> {
    browser::install()?;
    browser::install_firefox()?;
    if !browser::axe().is_file() {
        node("axe-core")?;
        timed(&format!("axe-core {} (accessibility rules, npm)", AXE.version), || npm(AXE))?;
    }
    docs_tools::install();
    Ok(())
}

/// The version of `wasm-bindgen` in Cargo.lock, which must equal that of its command.
fn wasm_bindgen_version() -> Result<String> {
    let lock = fs::read_to_string(root().join("Cargo.lock")).context("Cargo.lock cannot be read")?;
    let (_, after) =
        lock.split_once("name = \"wasm-bindgen\"\n").context("Cargo.lock names no wasm-bindgen")?;
    let version = after.lines().next().and_then(|line| line.strip_prefix("version = \"")?.strip_suffix('"'));
    version.map(str::to_owned).context("Cargo.lock names no version of wasm-bindgen")
}

/// The Rust target of the page: `rust-toolchain.toml` requests it, but rustup only heeds that if it may install by
/// itself.
fn target() -> Result<()> {
    target_of(WASM)
}

/// A Rust target, installed if missing.
pub fn target_of(target: &str) -> Result<()> {
    let folder = output(
        Command::new("rustc").args(["--print", "target-libdir", "--target", target]).current_dir(root()),
    )?;
    // rustc names the directory whether it exists or not, and rustup may leave it without the library.
    let std = |entry: std::io::Result<fs::DirEntry>| {
        entry.is_ok_and(|entry| entry.file_name().to_string_lossy().starts_with("libstd-"))
    };
    if fs::read_dir(Path::new(folder.trim_end())).is_ok_and(|mut entries| entries.any(std)) {
        return Ok(());
    }
    if find("rustup").is_none() {
        bail!(
            "Rust's std for {target} is missing: install your system's package of it, or Rust from https://rustup.rs"
        );
    }
    timed(&format!("the Rust target {target} (rustup)"), || {
        output(command("rustup").args(["target", "add", target])).map(drop)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::Version;

    #[test]
    fn the_lock_file_says_which_wasm_bindgen() {
        let version = wasm_bindgen_version().unwrap();
        assert_eq!(Version::in_text(&version).map(|version| version.0.len()), Some(3), "{version}");
    }
}
