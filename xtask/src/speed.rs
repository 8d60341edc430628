//! How much longer estimates take as WebAssembly than natively, in one run in which the two alternate.
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::install::{self, For, WASM};
use crate::process::{cargo, command, root, run, say, target_folder};

/// How many times as long WebAssembly may take.
const LIMIT: f64 = 2.5;
/// Number of rounds, of which the fastest counts: slower ones were slowed by other load on the machine.
const ROUNDS: usize = 8;
/// Fresh pairs of processes, of which the fastest counts: V8's optimisation decisions and heap placement persist for
/// a process's lifetime, and changed individual cases by up to 40 % between processes.
const PROCESSES: usize = 3;
/// How long a round should take natively, and how long each side warms up before it is timed, so that V8 has
/// optimised the code. Unit: nanosecond.
const ROUND: f64 = 30e6;
const WARM: f64 = 1e9;
/// As in `speed/src/lib.rs`.
const WORKLOADS: [&str; 5] =
    ["W1 GPT 2023", "W2 Llama-2 70B", "W3 GPT-3 175B", "W4 Mixtral 8x7B", "W5 DeepSeek-V3"];
const WORKS: [&str; 4] = ["totals", "quick step", "exact step", "report"];

/// Builds both and prints the table; fails if one takes more than `LIMIT` times as long.
pub fn compare() -> Result<()> {
    install::install(For::Page)?;
    install::install(For::Node)?;
    let programs = build()?;
    let mut least = [[[f64::INFINITY; 2]; WORKS.len()]; WORKLOADS.len()];
    for _ in 0..PROCESSES {
        let (mut native, mut wasm) = programs.start()?;
        for (workload, least) in least.iter_mut().enumerate() {
            for (work, least) in least.iter_mut().enumerate() {
                let took = turns(&mut native, &mut wasm, workload, work)
                    .with_context(|| format!("{}, {}", WORKLOADS[workload], WORKS[work]))?;
                *least = [least[0].min(took[0]), least[1].min(took[1])];
            }
        }
    }
    println!("{:16} {:11} {:>12} {:>12} {:>7}", "workload", "work", "native, µs", "wasm, µs", "ratio");
    let mut ratios = Vec::new();
    for (name, least) in WORKLOADS.iter().zip(least) {
        for (what, [native, wasm]) in WORKS.iter().zip(least) {
            let ratio = wasm / native;
            println!("{name:16} {what:11} {:>12.2} {:>12.2} {ratio:>7.2}", native / 1e3, wasm / 1e3);
            ratios.push(ratio);
        }
    }
    let most = ratios.iter().copied().fold(0.0, f64::max);
    // The geometric mean, since these are ratios.
    #[expect(clippy::cast_precision_loss, reason = "twenty ratios")]
    let mean = (ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len() as f64).exp();
    println!("geometric mean {mean:.2}, most {most:.2}, limit {LIMIT}");
    if most > LIMIT {
        bail!("WebAssembly takes {most:.2} times as long, above the limit of {LIMIT}")
    } else {
        Ok(())
    }
}

/// The engine natively at full optimisation, and as in the page.
struct Programs {
    native: PathBuf,
    wasm: PathBuf,
}

impl Programs {
    fn start(&self) -> Result<(Side, Side)> {
        let native = Side::start(&mut Command::new(&self.native))?;
        let wasm = Side::start(command("node").arg(root().join("speed/speed.mjs")).arg(&self.wasm))?;
        Ok((native, wasm))
    }
}

fn build() -> Result<Programs> {
    say("building the engine for this machine and for WebAssembly");
    run(&mut cargo([
        "build",
        "--quiet",
        "--locked",
        "--profile",
        "bench",
        "--package",
        "speed",
        "--bin",
        "speed",
    ]))?;
    run(&mut cargo([
        "build",
        "--quiet",
        "--locked",
        "--release",
        "--package",
        "speed",
        "--lib",
        "--target",
        WASM,
    ]))?;
    let out = target_folder().join("speed");
    let module = target_folder().join(WASM).join("release/speed.wasm");
    run(command("wasm-bindgen").args(["--target", "nodejs", "--out-dir"]).arg(&out).arg(module))?;
    let engine = out.join("speed_bg.wasm");
    run(command("wasm-opt").arg("-O4").arg(&engine).arg("-o").arg(&engine))?;
    // Cargo puts what the bench profile builds into `release`.
    Ok(Programs { native: target_folder().join("release/speed"), wasm: out.join("speed.js") })
}

/// Nanoseconds of one turn on each side.
fn turns(native: &mut Side, wasm: &mut Side, workload: usize, work: usize) -> Result<[f64; 2]> {
    // As many turns as make a round long enough for the clock.
    let mut turns = 1;
    let mut took = native.time(workload, work, turns)?.0;
    while took < ROUND / 2.0 {
        turns *= 2;
        took = native.time(workload, work, turns)?.0;
    }
    for side in [&mut *native, &mut *wasm] {
        let mut warm = 0.0;
        while warm < WARM {
            warm += side.time(workload, work, turns)?.0;
        }
    }
    let mut least = [f64::INFINITY; 2];
    // One after the other in each round, so that other load on the machine slows both.
    for _ in 0..ROUNDS {
        let (one, other) = (native.time(workload, work, turns)?, wasm.time(workload, work, turns)?);
        if !alike(one.1, other.1) {
            bail!("the two disagree: {} and {}", one.1, other.1);
        }
        least = [least[0].min(one.0), least[1].min(other.0)];
    }
    Ok(least.map(|took| took / f64::from(turns)))
}

/// Whether two results are equal except for the last digits of a mathematical function.
fn alike(one: f64, other: f64) -> bool {
    (one - other).abs() <= 1e-9 * one.abs()
}

/// A program that reads tasks and replies how long they took.
struct Side {
    process: Child,
    ask: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Side {
    fn start(command: &mut Command) -> Result<Self> {
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let ask = process.stdin.take().context("its input is piped")?;
        let answers = BufReader::new(process.stdout.take().context("its output is piped")?);
        Ok(Self { process, ask, answers })
    }

    /// Nanoseconds that this many turns took, and the numeric result.
    fn time(&mut self, workload: usize, work: usize, turns: u32) -> Result<(f64, f64)> {
        writeln!(self.ask, "{workload} {work} {turns}")?;
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        let (took, result) = line.trim_end().split_once(' ').with_context(|| format!("it says {line:?}"))?;
        Ok((took.parse()?, result.parse()?))
    }
}

impl Drop for Side {
    fn drop(&mut self) {
        // it may have ended by itself
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_may_differ_in_their_last_digits_alone() {
        assert!(alike(1.0, 1.0 + 1e-12));
        assert!(!alike(1.0, 1.0001));
        assert!(!alike(f64::NAN, f64::NAN));
    }
}
