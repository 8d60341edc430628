//! `shardscope submit`: sbatch with a check of the job first.

mod sbatch;

use std::io::{IsTerminal, Write};
use std::process::{Command, ExitCode, Stdio};
use std::str::FromStr;

use clap::Args;
use sbatch::{Call, Export};
use shardscope::link::{Pasted, PastedText};

use crate::beside::{Places, completed};
use crate::call_error::CallError;
use crate::check::{Against, FAILS, Gate, baseline};
use crate::gate::{FailOn, Figures, headroom, words};
use crate::input::{self, Changes};
use crate::output::{NO_PLAN, YELLOW, colour_of, coloured, refuse, tell};

/// `submit`.
#[derive(Args)]
pub(crate) struct SubmitArguments {
    /// Submit nothing that fails so: oom, tight, slower:5% beside --against, or open where something is left open.
    #[arg(long, value_name = "WHAT", value_delimiter = ',')]
    refuse: Vec<Refusal>,
    /// Percentage of an accelerator's memory that should stay free [default: memory_headroom, 4].
    #[arg(long, value_name = "PERCENT", value_parser = headroom)]
    headroom: Option<f64>,
    #[command(flatten)]
    against: Against,
    /// Accelerator of the partition, by a name that `shardscope accelerators` lists.
    #[arg(long, value_name = "NAME")]
    accelerator: Option<String>,
    /// The program that submits.
    #[arg(long, value_name = "PROGRAM", default_value = "sbatch")]
    program: String,
    /// Arguments of sbatch, handed on as they are; the job script among them is looked at.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENTS OF SBATCH")]
    words: Vec<String>,
}

/// A condition that prevents submission.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Refusal {
    /// A run that fails a gate.
    Fails(FailOn),
    /// A run that leaves something open, so that it cannot be estimated.
    Open,
}

impl FromStr for Refusal {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "open" { Ok(Self::Open) } else { text.parse().map(Self::Fails) }
    }
}

/// Checks the job, reports the result on standard error, and submits it unless refused.
pub(crate) fn run(arguments: &SubmitArguments) -> ExitCode {
    let call = Call::read(&arguments.words);
    let job = match job(arguments, &call) {
        Ok(job) => job,
        // What was read of standard input is gone: sbatch would be given the rest of a script as a whole one.
        Err(problem) if call.reads_standard_input() => return refuse(&problem),
        // sbatch itself reports a script that cannot be read, so the call is passed on anyway.
        Err(problem) => {
            tell(&format!("shardscope: {problem}\n"));
            None
        }
    };
    let stdin = job.as_ref().and_then(|job| job.stdin.clone());
    match look(arguments, &call, job) {
        Ok(None) => submit(arguments, stdin),
        Ok(Some(code)) => {
            tell("not submitted, as --refuse asks\n");
            ExitCode::from(code)
        }
        Err(problem) => refuse(&problem),
    }
}

/// The job script.
struct Job {
    name: String,
    text: String,
    /// What sbatch must be given as its standard input, since that was read here.
    stdin: Option<Vec<u8>>,
}

/// # Errors
/// Why it cannot be read.
fn job(arguments: &SubmitArguments, call: &Call) -> Result<Option<Job>, CallError> {
    // `--help` and `--version` submit nothing.
    if call.only_asks {
        return Ok(None);
    }
    if let Some(wrapped) = &call.wrap {
        return Ok(Some(Job { name: "wrap".to_owned(), text: wrapped.clone(), stdin: None }));
    }
    let lossy = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match &call.script {
        Some(script) => {
            let bytes = input::bytes(script)?;
            Ok(Some(Job { name: script.clone(), text: lossy(&bytes), stdin: None }))
        }
        // sbatch reads the script from its standard input; at a terminal that is left to sbatch.
        None if arguments.words.is_empty() && std::io::stdin().is_terminal() => Ok(None),
        None => {
            let bytes = input::bytes("-")?;
            Ok(Some(Job { name: "stdin".to_owned(), text: lossy(&bytes), stdin: Some(bytes) }))
        }
    }
}

/// Reports the result for the job; returns the exit code if it is refused.
///
/// # Errors
/// Why the question cannot be answered.
fn look(arguments: &SubmitArguments, call: &Call, job: Option<Job>) -> Result<Option<u8>, CallError> {
    let Some(job) = job else { return Ok(None) };
    let fail_on: Vec<FailOn> = arguments
        .refuse
        .iter()
        .filter_map(|refusal| match refusal {
            Refusal::Fails(what) => Some(*what),
            Refusal::Open => None,
        })
        .collect();
    let gate = Gate { fail_on: fail_on.clone(), headroom: arguments.headroom, price: None };
    let changes =
        gate.put_into(&Changes { accelerator: arguments.accelerator.clone(), ..Changes::default() });
    changes.checked()?;
    if gate.compares() && arguments.against.against.is_none() {
        return Err(CallError::NothingToCompare { option: "--refuse slower" });
    }
    let against = match &arguments.against.against {
        Some(file) => Some(baseline(file, &changes)?),
        None => None,
    };
    let mut pasted = Pasted {
        texts: vec![PastedText {
            name: job.name.rsplit('/').next().unwrap_or(&job.name).to_owned(),
            text: with_directives(&job.text, &call.directives()),
        }],
        environment: environment(&call.export),
        arguments: call.arguments.join(" "),
        ..Pasted::default()
    };
    changes.put_into(&mut pasted);
    let (mut answer, _) = completed(&mut pasted, &Places::new(std::slice::from_ref(&job.name)));
    if !answer.launches() {
        return Ok(None);
    }
    let Some((plan, found)) = answer.estimated() else {
        let open = coloured("no plan", YELLOW);
        tell(&format!("shardscope: {}: {open}: {}\n", job.name, answer.obstacle()));
        return Ok(arguments.refuse.contains(&Refusal::Open).then_some(NO_PLAN));
    };
    let figures = Figures::new(&plan, &found);
    let verdict = words(figures.verdict);
    let line = figures.line().replacen(verdict, &coloured(verdict, colour_of(figures.verdict)), 1);
    tell(&format!("shardscope: {}: {line}\n", job.name));
    let failures = if fail_on.is_empty() { Vec::new() } else { figures.failures(&fail_on, against.as_ref()) };
    for failure in &failures {
        tell(&format!("shardscope: {failure}\n"));
    }
    Ok((!failures.is_empty()).then_some(FAILS))
}

/// The variables that the job will inherit from here, according to `--export`.
fn environment(export: &Export) -> Vec<(String, String)> {
    let here = || {
        let variables = std::env::vars_os();
        let text =
            variables.filter_map(|(name, value)| name.into_string().ok().zip(value.into_string().ok()));
        // These belong to the allocation that this command runs in, if any; the job gets its own.
        text.filter(|(name, _)| !name.starts_with("SLURM_"))
    };
    let mut variables: Vec<(String, String)> = match export {
        Export { all: true, .. } => here().collect(),
        Export { names, .. } => here().filter(|(name, _)| names.contains(name)).collect(),
    };
    // `--export=ALL,TP=4` sets TP regardless of the caller's value.
    variables.retain(|(name, _)| export.values.iter().all(|(given, _)| given != name));
    variables.extend(export.values.iter().cloned());
    variables
}

/// Calls the program with the original arguments; returns its exit code.
fn submit(arguments: &SubmitArguments, stdin: Option<Vec<u8>>) -> ExitCode {
    let mut command = Command::new(&arguments.program);
    command.args(&arguments.words);
    if stdin.is_some() {
        command.stdin(Stdio::piped());
    }
    let status = command.spawn().and_then(|mut child| {
        if let (Some(bytes), Some(mut input)) = (stdin, child.stdin.take()) {
            // A program that ends without reading reports the reason itself.
            let _ = input.write_all(&bytes);
        }
        child.wait()
    });
    match status {
        Ok(status) => {
            let code = status.code().and_then(|code| u8::try_from(code).ok());
            // Ended by a signal: a failure, as in shells.
            code.map_or(ExitCode::FAILURE, ExitCode::from)
        }
        Err(error) => refuse(&format!("{} cannot be called: {error}", arguments.program)),
    }
}

/// The script with `directives` after its own, since the last one of a name counts, but before its first command,
/// since sbatch reads none after that.
fn with_directives(script: &str, directives: &str) -> String {
    let is_head = |line: &str| line.trim().is_empty() || line.trim_start().starts_with('#');
    let head: usize = script.split_inclusive('\n').take_while(|line| is_head(line)).map(str::len).sum();
    let (head, commands) = script.split_at(head);
    let line_end = if head.is_empty() || head.ends_with('\n') { "" } else { "\n" };
    format!("{head}{line_end}{directives}{commands}")
}
