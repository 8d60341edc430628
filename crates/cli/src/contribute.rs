//! `shardscope contribute`: a run that was measured, as a row of evidence. It has settings and measurements and nothing of the
//! script.

use std::process::ExitCode;

use clap::Args;
use shardscope_measured::{Contribution, Measured, Provenance, Row};

use crate::check::FAILS;
use crate::input::Input;
use crate::measured::taken;
use crate::output::{NO_PLAN, print, refuse, tell};

/// `contribute`.
#[derive(Args)]
pub(crate) struct ContributeArguments {
    /// Launch script, settings files and the run's log or its other measurements, in any order; with --check rows of evidence, a line each.
    #[command(flatten)]
    input: Input,
    /// Tell whether rows that are there are complete, and print nothing else.
    #[arg(long)]
    check: bool,
    /// Address at which the run can be looked up: a log, an issue, a paper.
    #[arg(long, value_name = "URL", default_value = "")]
    source: String,
    /// When it ran.
    #[arg(long, value_name = "YYYY-MM", default_value = "")]
    date: String,
    /// Versions of framework, torch and driver.
    #[arg(long, value_name = "TEXT", default_value = "")]
    versions: String,
}

/// Prints the row; exits with 1 if something is lacking, which is reported on standard error.
pub(crate) fn run(arguments: &ContributeArguments) -> ExitCode {
    if arguments.check {
        return match arguments.input.read() {
            // Several files of rows are read as one.
            Ok(pasted) => checked(&pasted.texts.iter().map(|text| text.text.as_str()).collect::<String>()),
            Err(problem) => refuse(&problem),
        };
    }
    let (input, pasted, found) = match taken(&arguments.input) {
        Ok(taken) => taken,
        Err(problem) => return refuse(&problem),
    };
    // Read with the log taken out: what is in it is a measurement and no setting.
    let mut answer = input.answer_of(pasted);
    // The estimate itself is not part of a row, but a run without one is no evidence.
    if answer.estimated().is_none() {
        tell(&answer.obstacles_to_caller());
        return ExitCode::from(NO_PLAN);
    }
    let provenance = Provenance {
        source: arguments.source.clone(),
        date: arguments.date.clone(),
        versions: arguments.versions.clone(),
    };
    let measured: Vec<&Measured> = found.iter().map(|found| &found.measured).collect();
    let Some(Contribution { row, lacking }) =
        Contribution::from_run(&answer.resolution, &measured, &provenance)
    else {
        return refuse("settings alone cannot express this plan, and a row carries nothing of the script");
    };
    print(&row.line());
    report_lacking(&lacking)
}

fn checked(rows: &str) -> ExitCode {
    let mut lacking = Vec::new();
    let rows: Vec<&str> = rows.lines().filter(|line| !line.trim().is_empty()).collect();
    for (index, line) in rows.iter().enumerate() {
        let number = index + 1;
        match Row::read(line) {
            Ok(row) => lacking.extend(row.lacking().into_iter().map(|what| format!("row {number}: {what}"))),
            // A line that is not a row must not hide what the others lack.
            Err(error) => lacking.push(format!("row {number} is not valid: {error}")),
        }
    }
    if rows.is_empty() {
        lacking.push("there is no row".to_owned());
    }
    report_lacking(&lacking)
}

fn report_lacking(lacking: &[String]) -> ExitCode {
    for what in lacking {
        tell(&format!("lacking: {what}\n"));
    }
    if lacking.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(FAILS) }
}
