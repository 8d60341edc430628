//! Test programs of the tree with switches, and their results for a mutant.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::compile::{CRATES, cargo};

/// Time limit for all of a mutant's pinned plans, which take some seconds: it ends an endless loop that never reads a switch.
const PATIENCE: Duration = Duration::from_secs(60);

/// Time limit for estimating all pinned plans.
const BEGINNING: Duration = Duration::from_secs(600);

/// Compiles the test programs that contain exact tests: the suite and the crates' own.
///
/// # Errors
/// If cargo fails.
pub(crate) fn build(tree: &Path) -> Result<Vec<PathBuf>> {
    let mut command = cargo(tree);
    command.args([
        "test",
        "--no-run",
        "--message-format=json",
        "--quiet",
        "--package=shardscope-page",
        "--test=suite",
        "--lib",
    ]);
    let own = CRATES.map(|name| format!("--package=shardscope-{name}"));
    let output = command.args(own).stderr(Stdio::inherit()).output().context("cargo test")?;
    ensure!(output.status.success(), "the tests do not compile: {}", String::from_utf8_lossy(&output.stdout));
    let messages = String::from_utf8_lossy(&output.stdout);
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let tests = messages.filter(|message| message["profile"]["test"] == true);
    Ok(tests.filter_map(|message| message["executable"].as_str().map(PathBuf::from)).collect())
}

/// The program that answers for the pinned plans (`mutants/harness.rs`).
pub(crate) struct Pinned {
    suite: PathBuf,
    folder: PathBuf,
    running: Option<(Child, ChildStdin, Receiver<String>)>,
}

impl Pinned {
    pub(crate) fn new(suite: &Path, folder: &Path) -> Self {
        Self { suite: suite.to_owned(), folder: folder.to_owned(), running: None }
    }

    fn start(&mut self) -> Result<()> {
        let mut child = Command::new(&self.suite)
            .args(["pinned_plans::mutants::answers", "--exact", "--ignored", "--nocapture"])
            .current_dir(&self.folder)
            .env("RUST_MIN_STACK", "16777216")
            .env("MUTANT", "0")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .context("the suite")?;
        let (said, lines) = channel();
        let output = BufReader::new(child.stdout.take().context("its output")?);
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if let Some(answer) = line.strip_prefix("> ")
                    && said.send(answer.to_owned()).is_err()
                {
                    break;
                }
            }
        });
        let input = child.stdin.take().context("its input")?;
        let ready = lines.recv_timeout(BEGINNING).context("the pinned plans move without a mutant")?;
        ensure!(ready == "ready", "{ready}");
        self.running = Some((child, input, lines));
        Ok(())
    }

    /// What happens to the pinned plans with mutant `number`: a word, then a tab and where.
    ///
    /// # Errors
    /// If the program cannot be started.
    pub(crate) fn ask(&mut self, number: u32) -> Result<String> {
        if self.running.is_none() {
            self.start()?;
        }
        let Some((child, input, lines)) = &mut self.running else { return Ok(String::new()) };
        writeln!(input, "{number}")?;
        let began = Instant::now();
        if let Ok(answer) = lines.recv_timeout(PATIENCE) {
            return Ok(answer);
        }
        let word = if began.elapsed() < PATIENCE { "crashed" } else { "endless" };
        let _ = child.kill();
        child.wait()?;
        self.running = None;
        Ok(format!("{word}\tpinned plans"))
    }
}

/// Prints the rows of plans, drawn as `asked`, that catch some of `wanted`.
///
/// # Errors
/// If the program cannot be started.
pub(crate) fn draw(suite: &Path, folder: &Path, asked: &str, wanted: &BTreeSet<u32>) -> Result<()> {
    let file = folder.with_file_name("wanted");
    std::fs::write(&file, wanted.iter().map(|number| format!("{number}\n")).collect::<String>())?;
    let mut child = Command::new(suite)
        .args(["pinned_plans::mutants::draws", "--exact", "--ignored", "--nocapture"])
        .current_dir(folder)
        .env("RUST_MIN_STACK", "16777216")
        .env("MUTANT", "0")
        .env("MUTANTS", &file)
        .env("SHARDSCOPE_DRAW", asked)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .context("the suite")?;
    let output = BufReader::new(child.stdout.take().context("its output")?);
    for line in output.lines().map_while(Result::ok) {
        if let Some(row) = line.strip_prefix("> ") {
            println!("{row}");
        }
    }
    ensure!(child.wait()?.success(), "no plans: {asked}");
    Ok(())
}

/// One test of one program, as it is without a mutant.
pub(crate) struct Test {
    pub(crate) program: PathBuf,
    name: String,
    pub(crate) took: Duration,
    pub(crate) meets: BTreeSet<u32>,
}

/// The output of `command` within `most`, and whether it succeeded: `None` if it was stopped.
fn ended(command: &mut Command, most: Duration) -> Result<Option<(bool, String)>> {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    let mut output = child.stdout.take().context("its output")?;
    let said = std::thread::spawn(move || {
        let mut text = Vec::new();
        // The output up to then counts.
        let _ = output.read_to_end(&mut text);
        String::from_utf8_lossy(&text).into_owned()
    });
    let began = Instant::now();
    while began.elapsed() < most {
        if let Some(status) = child.try_wait()? {
            return Ok(Some((status.success(), said.join().unwrap_or_default())));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let _ = child.kill();
    child.wait()?;
    Ok(None)
}

/// The tests of `program` that `counts` accepts, each run once.
///
/// # Errors
/// If one fails without a mutant.
pub(crate) fn tests(program: &Path, folder: &Path, counts: impl Fn(&str) -> bool) -> Result<Vec<Test>> {
    let list = Command::new(program).args(["--list", "--format", "terse"]).current_dir(folder).output()?;
    let list = String::from_utf8_lossy(&list.stdout).into_owned();
    let names = list.lines().filter_map(|line| line.strip_suffix(": test")).filter(|name| counts(name));
    let file = folder.with_file_name("met");
    let mut tests = Vec::new();
    for name in names {
        let began = Instant::now();
        let mut command = Command::new(program);
        command.args([name, "--exact"]).current_dir(folder).env("MUTANT_MET", &file);
        let _ = std::fs::remove_file(&file);
        let passed = ended(&mut command, BEGINNING)?.is_some_and(|(passed, _)| passed);
        ensure!(passed, "{name} fails without a mutant");
        let took = began.elapsed();
        let met = std::fs::read(&file).unwrap_or_default();
        let meets = met.chunks_exact(4).map(|four| u32::from_le_bytes([four[0], four[1], four[2], four[3]]));
        tests.push(Test { program: program.to_owned(), name: name.to_owned(), took, meets: meets.collect() });
    }
    Ok(tests)
}

/// Which of `tests` of one program notices mutant `number`: a word, then a tab and the test.
///
/// # Errors
/// If the program cannot be started.
pub(crate) fn noticed(tests: &[&Test], number: u32, folder: &Path) -> Result<Option<String>> {
    let Some(first) = tests.first() else { return Ok(None) };
    let mut command = Command::new(&first.program);
    command.arg("--exact").args(tests.iter().map(|test| &test.name)).env("MUTANT", number.to_string());
    let usual: Duration = tests.iter().map(|test| test.took).sum();
    Ok(match ended(command.current_dir(folder), 5 * usual + Duration::from_secs(10))? {
        Some((true, _)) => None,
        Some((false, said)) => {
            let failed = said.lines().find_map(|line| line.strip_suffix(" ... FAILED"));
            Some(format!("failed\t{}", failed.unwrap_or(&first.name).trim_start_matches("test ")))
        }
        None => Some(format!("endless\t{} and others", first.name)),
    })
}
