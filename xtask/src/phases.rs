//! Every test of the project, phase by phase.
mod count;

use std::io::{self, BufRead, BufReader, Write};
use std::process::{Command, ExitStatus};
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result, anyhow, bail};
use clap::ValueEnum;
use count::Count;

use crate::install::{self, For, WASM};
use crate::process::{cargo, note, root};

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
    /// the JavaScript package, built into npm/dist
    Javascript,
    /// the JavaScript package held against the terminal in Node; the Python wheel and the terminal program, installed and called
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

    /// Whether it runs beside the phases before it because it builds for release and they do not: linking a release keeps one
    /// processor busy for minutes, and cargo locks the folder of each profile by itself. Only the program that writes the pages
    /// beside the main page, which is of the development profile, waits for their builds.
    fn is_beside(self) -> bool {
        matches!(self, Self::Page | Self::Size | Self::Javascript)
    }

    /// Whether it tests what the phases beside have built.
    fn is_of_releases(self) -> bool {
        matches!(self, Self::Package | Self::Browser)
    }

    /// Tools that must be installed first.
    fn needs(self) -> Option<For> {
        match self {
            Self::LintWeb | Self::Page | Self::Javascript | Self::Package => Some(For::Page),
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
            Self::Publish => vec![xtask(&["publish"])],
            // in a separate process, so that its output is watched too
            Self::Deny => vec![xtask(&["deny"])],
            Self::Page => vec![xtask(&["build"])],
            Self::Size => vec![xtask(&["size"])],
            Self::Javascript => vec![xtask(&["npm", "--build"])],
            Self::Package => vec![xtask(&["npm", "--test"]), xtask(&["wheel"]), xtask(&["installed"])],
        }
    }
}

fn xtask(words: &[&str]) -> Command {
    let mut own = std::env::current_exe().map_or_else(|_| cargo(["xtask"]), Command::new);
    own.args(words).current_dir(root());
    own
}

/// Runs `phases`, or all except those for releases; what is built for release is built beside the others, and shown after them. A
/// failed phase does not stop the next, and nothing is skipped silently. The last line gives the counts.
pub fn run(phases: &[Phase]) -> Result<()> {
    let wanted: Vec<Phase> =
        Phase::value_variants().iter().copied().filter(|phase| is_wanted(*phase, phases)).collect();
    let needs: Vec<For> = wanted.iter().filter_map(|phase| phase.needs()).collect();
    // What tests need includes what the page needs.
    if needs.contains(&For::Tests) {
        install::install(For::Tests)?;
    } else if needs.contains(&For::Page) {
        install::install(For::Page)?;
    }
    let (beside, others): (Vec<Phase>, Vec<Phase>) = wanted.iter().partition(|phase| phase.is_beside());
    let (after, before): (Vec<Phase>, Vec<Phase>) = others.iter().partition(|phase| phase.is_of_releases());
    let mut totals = Totals::default();
    thread::scope(|scope| {
        let built = (!beside.is_empty()).then(|| {
            if !before.is_empty() {
                note(&format!("meanwhile, shown afterwards: {}", named(&beside)));
            }
            // Alone it shows its lines as they come.
            let shown = before.is_empty();
            scope.spawn(move || {
                let one = |phase| {
                    let mut lines = Vec::new();
                    let done = if shown { done(phase, &mut io::stdout()) } else { done(phase, &mut lines) };
                    (done, lines)
                };
                beside.into_iter().map(one).collect::<Vec<_>>()
            })
        });
        for phase in before {
            totals.add(done(phase, &mut io::stdout()));
        }
        let ended =
            built.map(|built| built.join().map_err(|_| anyhow!("a phase beside the others broke off")));
        for (done, lines) in ended.transpose()?.unwrap_or_default() {
            io::stdout().write_all(&lines)?;
            totals.add(done);
        }
        anyhow::Ok(())
    })?;
    for phase in after {
        totals.add(done(phase, &mut io::stdout()));
    }
    totals.say()
}

/// Whether `phase` runs where `named` are asked for, or none.
fn is_wanted(phase: Phase, named: &[Phase]) -> bool {
    let needed = phase == Phase::Javascript && named.contains(&Phase::Package);
    named.contains(&phase) || needed || named.is_empty() && !phase.is_for_releases()
}

fn named(phases: &[Phase]) -> String {
    phases.iter().map(|phase| phase.name()).collect::<Vec<_>>().join(", ")
}

/// A phase that has run.
struct Done {
    phase: Phase,
    /// The counts of its tests.
    count: Count,
    passed: bool,
    seconds: u64,
}

/// What all phases came to.
#[derive(Default)]
struct Totals {
    all: Vec<Done>,
}

impl Totals {
    fn add(&mut self, done: Done) {
        self.all.push(done);
    }

    fn say(mut self) -> Result<()> {
        self.all.sort_by_key(|done| done.phase);
        let mut count = Count::default();
        let mut summary = String::new();
        let mut failed = 0;
        for Done { phase, count: own, passed, seconds } in self.all {
            let outcome = if passed { "ok" } else { "FAILED" };
            failed += u64::from(!passed);
            summary += &format!("{:<10} {outcome:<7} {seconds:>5} s\n", phase.name());
            count.add(own);
        }
        println!();
        for line in count.not_checked() {
            println!("{line}");
        }
        // a failed phase without a failed test counts as one failure
        println!("{summary}\n{} passed, {} failed", count.passed(), count.failed().max(failed));
        if failed > 0 { bail!("{failed} of the phases failed") } else { Ok(()) }
    }
}

/// Runs a phase, with its output to `out`.
fn done(phase: Phase, out: &mut impl Write) -> Done {
    let name = phase.name();
    // A terminal that is gone takes no lines; the phase runs all the same.
    let tell = |out: &mut dyn Write, line: &str| drop(writeln!(out, "{line}"));
    tell(out, &format!("\n==> {name}"));
    let started = Instant::now();
    let mut count = Count::default();
    let ended = watched(phase, &mut count, out);
    let seconds = started.elapsed().as_secs();
    let outcome = if ended.is_ok() { "ok" } else { "FAILED" };
    if let Err(error) = &ended {
        tell(out, &format!("    {error:#}"));
    }
    tell(out, &format!("    {name}: {outcome}, {seconds} s"));
    Done { phase, count, passed: ended.is_ok(), seconds }
}

fn watched(phase: Phase, count: &mut Count, out: &mut impl Write) -> Result<()> {
    if phase == Phase::Browser && !root().join("dist/index.html").is_file() {
        bail!("there is no page in dist/ to test");
    }
    // every command of a phase runs, whatever the result of the previous one
    let mut failed = Vec::new();
    for mut command in phase.commands() {
        let status = tee(&mut command, out, |line| count.line(line))?;
        if !status.success() {
            failed.push(status.to_string());
        }
    }
    if failed.is_empty() { Ok(()) } else { bail!("{}", failed.join(", ")) }
}

/// Runs it with its output to `out`, and shows each line to `watch` too.
fn tee(command: &mut Command, out: &mut impl Write, mut watch: impl FnMut(&str)) -> Result<ExitStatus> {
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
        out.write_all(&line)?;
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
        let mut out = Vec::new();
        assert!(tee(&mut command, &mut out, |line| seen.push(line.to_owned())).unwrap().success());
        assert!(seen.iter().any(|line| line.starts_with("cargo ")), "{seen:?}");
        assert!(String::from_utf8(out).unwrap().starts_with("cargo "));
        let mut command = cargo(["--no-such-option"]);
        assert!(!tee(&mut command, &mut Vec::new(), |_| {}).unwrap().success());
    }

    #[test]
    fn what_a_phase_tests_is_built_too() {
        let wanted = |named: &[Phase]| {
            let all = Phase::value_variants().iter().copied();
            all.filter(|phase| is_wanted(*phase, named)).collect::<Vec<_>>()
        };
        assert_eq!(wanted(&[Phase::Package]), [Phase::Javascript, Phase::Package]);
        assert_eq!(wanted(&[Phase::Page, Phase::Lint]), [Phase::Lint, Phase::Page]);
        let all = wanted(&[]);
        assert_eq!(all.len() + 1, Phase::value_variants().len(), "all but that for releases: {all:?}");
        assert!(!all.contains(&Phase::Publish));
    }
}
