//! Paths, and how other programs are run.
use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use regex::Regex;

/// The checkout.
pub fn root() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here)
}

/// Where the project's own tools are installed: `$SHARDSCOPE_TOOLS`, or `.tools/` of this checkout, which linked git
/// worktrees share with the main one.
pub fn tools() -> &'static Path {
    static TOOLS: OnceLock<PathBuf> = OnceLock::new();
    TOOLS.get_or_init(|| match env::var_os("SHARDSCOPE_TOOLS") {
        Some(folder) => folder.into(),
        None => main_checkout().unwrap_or_else(|| root().to_owned()).join(".tools"),
    })
}

/// The main checkout, if this one is a linked worktree.
fn main_checkout() -> Option<PathBuf> {
    let git = Command::new("git")
        .args(["rev-parse", "--path-format=absolute", "--git-common-dir"])
        .current_dir(root())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    let folder = PathBuf::from(String::from_utf8(git.stdout).ok()?.trim_end());
    // It has another name in a bare repository or a submodule, whose parent is not a checkout.
    folder.ends_with(".git").then(|| folder.parent().map(Path::to_owned)).flatten()
}

/// Folders that are searched for programs: the project's own tools, then the `PATH`.
fn search_path() -> OsString {
    let own = [tools().join("bin"), tools().join("npm/node_modules/.bin")];
    let path = env::var_os("PATH").unwrap_or_default();
    // A directory with the separator in its name cannot be joined: then only the `PATH` counts.
    env::join_paths(own.into_iter().chain(env::split_paths(&path))).unwrap_or(path)
}

/// Where a program of that name is, among the project's own tools or on the `PATH`; a path is used directly.
pub fn find(program: &str) -> Option<PathBuf> {
    // A relative path is relative to the checkout, wherever the command was called.
    which::which_in(program, Some(search_path()), root()).ok()
}

/// A program to be run in the checkout, which finds the project's own tools before others.
pub fn command(program: &str) -> Command {
    let found = find(program).unwrap_or_else(|| program.into());
    let mut command = Command::new(found);
    command.current_dir(root()).env("PATH", search_path());
    // Trunk accepts no other value: it refuses NO_COLOR=1.
    if env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty()) {
        command.env("NO_COLOR", "true");
    }
    command
}

/// The cargo that runs this, for this machine: variables that a hook inherits for another target are removed.
pub fn cargo<'a>(arguments: impl IntoIterator<Item = &'a str>) -> Command {
    let mut command = command(&env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned()));
    command.args(arguments).env_remove("CARGO_BUILD_TARGET").env_remove("CARGO_ENCODED_RUSTFLAGS");
    command
}

/// Cargo's target folder.
pub fn target_folder() -> PathBuf {
    // Cargo runs in the checkout and takes a relative folder from there; an absolute one replaces it.
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |folder| root().join(folder))
}

/// Runs it, with its output where ours goes; an error unless it succeeds.
pub fn run(command: &mut Command) -> Result<()> {
    let what = shown(command);
    let status = command.status().with_context(|| format!("{what} could not be run"))?;
    if !status.success() {
        bail!("{what}: {status}");
    }
    Ok(())
}

/// Runs it silently; returns its output if it succeeds, and its messages if it fails.
pub fn output(command: &mut Command) -> Result<String> {
    let what = shown(command);
    let done = command.stdin(Stdio::null()).output().with_context(|| format!("{what} could not be run"))?;
    if !done.status.success() {
        let said = String::from_utf8_lossy(&done.stderr);
        bail!("{what}: {}: {}", done.status, said.trim().lines().last().unwrap_or_default());
    }
    Ok(String::from_utf8_lossy(&done.stdout).into_owned())
}

fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or(command.get_program());
    let mut words = vec![program.to_string_lossy()];
    words.extend(command.get_args().map(|word| word.to_string_lossy()));
    words.join(" ")
}

/// A dotted version number, compared part by part.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub Vec<u64>);

impl Version {
    /// The first version number in `text`.
    pub fn in_text(text: &str) -> Option<Self> {
        static NUMBER: OnceLock<Option<Regex>> = OnceLock::new();
        let number = NUMBER.get_or_init(|| Regex::new(r"\d+(\.\d+)*").ok()).as_ref()?;
        let found = number.find(text)?.as_str();
        found.split('.').map(|part| part.parse().ok()).collect::<Option<_>>().map(Self)
    }

    /// The version from `PROGRAM --version`; `None` if there is no such program or it does not run.
    pub fn new(program: &str) -> Option<Self> {
        output(command(program).arg("--version")).ok().and_then(|text| Self::in_text(&text))
    }
}

/// Prints a line about what is being done.
pub fn say(what: &str) {
    println!("==> {what}");
}

/// Prints a line below it.
pub fn note(what: &str) {
    println!("    {what}");
}

/// Announces an installation, runs it, and reports how long it took.
pub fn timed<T>(what: &str, install: impl FnOnce() -> Result<T>) -> Result<T> {
    let started = Instant::now();
    say(&format!("installing {what}"));
    let done = install().with_context(|| format!("{what} could not be installed"))?;
    note(&format!("installed {what} in {} s", started.elapsed().as_secs()));
    Ok(done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_and_compared_by_number() {
        let version = |text| Version::in_text(text).unwrap();
        assert_eq!(version("trunk 0.21.14"), Version(vec![0, 21, 14]));
        assert_eq!(version("wasm-opt version 132 (version_132)"), Version(vec![132]));
        assert!(version("0.21.14") > version("0.21.9"));
        assert_eq!(Version::in_text("no number"), None);
    }

    #[test]
    fn a_program_that_fails_is_an_error_that_says_what_it_said() {
        let error = output(command("cargo").arg("--no-such-option")).unwrap_err().to_string();
        assert!(error.contains("--no-such-option"), "{error}");
        assert_eq!(Version::new("no-such-program-here"), None);
    }
}
