//! Every test of the project, phase by phase.
mod count;

use std::io::{self, BufRead, BufReader, Write};
use std::process::{Command, ExitStatus};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use count::Count;

use crate::install::{self, For, WASM};
use crate::process::{cargo, note, root, say};

/// What `cargo xtask test` does, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Phase {
    /// cargo fmt
    Format,
    /// clippy on everything that runs natively
    Lint,
    /// clippy on engine and page for wasm32
    LintWeb,
    /// licences, sources and known faults of the dependencies
    Deny,
    /// the engine's tests, examples and documentation; the pages beside the main page; these commands
    Engine,
    /// rustdoc on every library, warnings as errors
    Docs,
    /// the crates as they would be published: packed, unpacked and compiled, in their order; only where it is named
    Publish,
    /// the release page, built by Trunk into dist/
    Page,
    /// what the page weighs, compressed by brotli; fails above the limit
    Size,
    /// the JavaScript package, built and held against the terminal in Node; the Python wheel and the terminal program, installed and
    /// called
    Package,
    /// the journeys of e2e/, on the page in dist/, in headless Chromium
    Browser,
}

impl Phase {
    fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    /// Whether it only runs if named: every crate is compiled again, by itself, which takes minutes and finds
    /// problems that only a release would meet. Continuous integration has a job for it.
    fn is_for_releases(self) -> bool {
        self == Self::Publish
    }

    /// Tools that must be installed first.
    fn needs(self) -> Option<For> {
        match self {
            Self::LintWeb | Self::Page | Self::Package => Some(For::Page),
            Self::Browser => Some(For::Tests),
            Self::Format
            | Self::Lint
            | Self::Deny
            | Self::Engine
            | Self::Docs
            | Self::Publish
            | Self::Size => None,
        }
    }

    /// The commands that it runs in sequence; their output is watched for counts.
    fn commands(self) -> Vec<Command> {
        let strict = ["--", "-D", "warnings"];
        match self {
            Self::Format => vec![cargo(["fmt", "--all", "--check"])],
            Self::Lint => {
                let mut lint = cargo(["clippy", "--quiet", "--locked", "--workspace", "--all-targets"]);
                lint.args(strict);
                vec![lint]
            }
            Self::LintWeb => {
                let mut lint =
                    cargo(["clippy", "--quiet", "--locked", "--target", WASM, "--features", "page"]);
                lint.args(["--lib", "--bins", "--workspace"]);
                // these only run natively
                for native in ["shardscope-cli", "e2e", "mutants", "pages", "speed", "xtask"] {
                    lint.args(["--exclude", native]);
                }
                lint.args(strict);
                vec![lint]
            }
            Self::Engine => {
                let mut all = cargo(["test", "--locked", "--no-fail-fast", "--workspace"]);
                // the journeys need a browser and a page, and have a separate phase
                all.args(["--exclude", "e2e"]);
                vec![all]
            }
            Self::Browser => vec![cargo(["test", "--locked", "--package", "e2e", "--no-fail-fast"])],
            Self::Docs => {
                let mut docs =
                    cargo(["doc", "--locked", "--no-deps", "--workspace", "--lib", "--exclude", "e2e"]);
                docs.env("RUSTDOCFLAGS", "-D warnings");
                vec![docs]
            }
            Self::Publish => vec![xtask("publish")],
            // in a separate process, so that its output is watched too
            Self::Deny => vec![xtask("deny")],
            Self::Page => vec![xtask("build")],
            Self::Size => vec![xtask("size")],
            Self::Package => vec![xtask("npm"), xtask("wheel"), xtask("installed")],
        }
    }
}

fn xtask(command: &str) -> Command {
    let mut own = std::env::current_exe().map_or_else(|_| cargo(["xtask"]), Command::new);
    own.arg(command).current_dir(root());
    own
}

/// Runs `phases`, or all except those for releases. A failed phase does not stop the next, and nothing is skipped
/// silently. The last line gives the counts.
pub fn run(phases: &[Phase]) -> Result<()> {
    let wanted: Vec<Phase> = Phase::value_variants()
        .iter()
        .copied()
        .filter(|phase| phases.contains(phase) || phases.is_empty() && !phase.is_for_releases())
        .collect();
    let needs: Vec<For> = wanted.iter().filter_map(|phase| phase.needs()).collect();
    // What tests need includes what the page needs.
    if needs.contains(&For::Tests) {
        install::install(For::Tests)?;
    } else if needs.contains(&For::Page) {
        install::install(For::Page)?;
    }
    let mut count = Count::default();
    let mut summary = String::new();
    let mut failed = 0;
    for phase in wanted {
        let name = phase.name();
        println!();
        say(&name);
        let started = Instant::now();
        let done = watched(phase, &mut count);
        let seconds = started.elapsed().as_secs();
        let outcome = if done.is_ok() { "ok" } else { "FAILED" };
        if let Err(error) = done {
            note(&format!("{error:#}"));
            failed += 1;
        }
        note(&format!("{name}: {outcome}, {seconds} s"));
        summary += &format!("{name:<10} {outcome:<7} {seconds:>5} s\n");
    }
    println!();
    for line in count.not_checked() {
        println!("{line}");
    }
    // a failed phase without a failed test counts as one failure
    println!("{summary}\n{} passed, {} failed", count.passed(), count.failed().max(failed));
    if failed > 0 { bail!("{failed} of the phases failed") } else { Ok(()) }
}

fn watched(phase: Phase, count: &mut Count) -> Result<()> {
    if phase == Phase::Browser && !root().join("dist/index.html").is_file() {
        bail!("there is no page in dist/ to test");
    }
    // every command of a phase runs, whatever the result of the previous one
    let mut failed = Vec::new();
    for mut command in phase.commands() {
        let status = tee(&mut command, |line| count.line(line))?;
        if !status.success() {
            failed.push(status.to_string());
        }
    }
    if failed.is_empty() { Ok(()) } else { bail!("{}", failed.join(", ")) }
}

/// Runs it with its output where ours goes, and shows each line to `watch` too.
fn tee(command: &mut Command, mut watch: impl FnMut(&str)) -> Result<ExitStatus> {
    // One pipe for both, so that their lines are in the order in which they were written.
    let (reader, writer) = io::pipe()?;
    command.stdout(writer.try_clone()?).stderr(writer);
    let mut child =
        command.spawn().with_context(|| format!("{} could not be run", command.get_program().display()))?;
    // the pipe ends when its last writer closes: ours must be dropped
    command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
    let mut reader = BufReader::new(reader);
    // By bytes: a program may print what is not UTF-8.
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line)? > 0 {
        io::stdout().write_all(&line)?;
        watch(String::from_utf8_lossy(&line).trim_end());
        line.clear();
    }
    Ok(child.wait()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_a_command_is_seen_and_its_failure_too() {
        let mut seen = Vec::new();
        let mut command = cargo(["--version"]);
        assert!(tee(&mut command, |line| seen.push(line.to_owned())).unwrap().success());
        assert!(seen.iter().any(|line| line.starts_with("cargo ")), "{seen:?}");
        let mut command = cargo(["--no-such-option"]);
        assert!(!tee(&mut command, |_| {}).unwrap().success());
    }
}
