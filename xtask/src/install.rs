//! Installs what building and testing the page need and this machine lacks, and says so.
//!
//! What is already there in a fitting version is used as it is. Everything else goes into `.tools/` of this checkout, except
//! the wasm32 target, which belongs to the Rust toolchain, and packages of the system's own package manager. A tool that
//! is published as a program is fetched as one; where that cannot be had it is compiled.
mod programs;

use std::env;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, bail};
use clap::ValueEnum;

use crate::process::{Version, command, find, note, output, root, run, say, timed, tools};
use crate::{browser, docs_tools};

/// The target of the page.
pub const WASM: &str = "wasm32-unknown-unknown";
/// The newest that Rust 1.95 may build.
const TRUNK: &str = "0.21.14";
/// Older ones refuse what rustc 1.95 writes.
const BINARYEN: &str = "132";
const AXE: &str = "4.14.1";

/// What things are installed for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum For {
    /// Building the page: the wasm32 target, Trunk, wasm-bindgen, wasm-opt
    Page,
    /// The JavaScript package: Node and npm
    Node,
    /// The browser tests: the above, a browser and its driver, axe-core, documentation tools
    Tests,
}

/// Installs what is missing.
pub fn install(what: For) -> Result<()> {
    match what {
        For::Page => page(),
        For::Node => node("the test of the JavaScript package"),
        For::Tests => page().and_then(|()| tests()),
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
    if !axe().is_file() {
        node("axe-core")?;
        timed(&format!("axe-core {AXE} (accessibility rules, npm)"), || npm(&format!("axe-core@{AXE}")))?;
    }
    docs_tools::install();
    Ok(())
}

/// The file of axe-core's rules.
pub fn axe() -> std::path::PathBuf {
    tools().join("npm/node_modules/axe-core/axe.min.js")
}

/// The version of `wasm-bindgen` in Cargo.lock, which that of its command must equal.
fn wasm_bindgen_version() -> Result<String> {
    let lock = fs::read_to_string(root().join("Cargo.lock")).context("Cargo.lock cannot be read")?;
    let (_, after) =
        lock.split_once("name = \"wasm-bindgen\"\n").context("Cargo.lock names no wasm-bindgen")?;
    let version = after.lines().next().and_then(|line| line.strip_prefix("version = \"")?.strip_suffix('"'));
    version.map(str::to_owned).context("Cargo.lock names no version of wasm-bindgen")
}

/// The Rust target of the page: `rust-toolchain.toml` asks for it, but rustup heeds that only where it may install by itself.
fn target() -> Result<()> {
    let folder = output(
        Command::new("rustc").args(["--print", "target-libdir", "--target", WASM]).current_dir(root()),
    )?;
    let std = |entry: std::io::Result<fs::DirEntry>| {
        entry.is_ok_and(|entry| entry.file_name().to_string_lossy().starts_with("libstd-"))
    };
    if fs::read_dir(Path::new(folder.trim_end())).is_ok_and(|mut entries| entries.any(std)) {
        return Ok(());
    }
    if find("rustup").is_none() {
        bail!(
            "Rust's std for {WASM} is missing: install your system's package of it, or Rust from https://rustup.rs"
        );
    }
    timed(&format!("the Rust target {WASM} (rustup)"), || {
        output(command("rustup").args(["target", "add", WASM])).map(drop)
    })
}

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

/// Whether the program is here in exactly that version.
fn has_version(program: &str, wanted: &str) -> bool {
    Version::of(program).is_some_and(|have| Some(have) == Version::in_text(wanted))
}

/// Whether the program is here in that version or a newer one.
fn has_at_least(program: &str, wanted: &str) -> bool {
    Version::of(program).is_some_and(|have| Some(have) >= Version::in_text(wanted))
}

/// This machine as the names of published programs have it: processor and system.
fn machine() -> (&'static str, &'static str) {
    (env::consts::ARCH, env::consts::OS)
}

/// Tries `ways` one after another until one succeeds; each that fails says why.
fn first_of(what: &str, ways: &[(&str, &dyn Fn() -> Result<()>)]) -> Result<()> {
    for (way, install) in ways {
        say(&format!("installing {what} ({way})"));
        let started = std::time::Instant::now();
        match install() {
            Ok(()) => {
                note(&format!("installed {what} in {} s", started.elapsed().as_secs()));
                return Ok(());
            }
            Err(error) => note(&format!("not that way: {error:#}")),
        }
    }
    bail!("{what} could not be installed")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lock_file_says_which_wasm_bindgen() {
        let version = wasm_bindgen_version().unwrap();
        assert_eq!(Version::in_text(&version).map(|version| version.0.len()), Some(3), "{version}");
    }

    #[test]
    fn the_next_way_is_tried_where_one_fails_and_all_failing_is_an_error() {
        let fails = || bail!("no");
        assert!(first_of("it", &[("first", &fails), ("second", &|| Ok(()))]).is_ok());
        assert!(first_of("it", &[("first", &fails)]).is_err());
    }
}
