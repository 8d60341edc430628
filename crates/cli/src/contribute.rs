//! `shardscope contribute`: a run that was measured, as a row of evidence. It has settings and measurements and nothing of the
//! script.

use std::collections::BTreeMap;
use std::process::ExitCode;

use clap::Args;
use serde::{Deserialize, Serialize};
use shardscope::launch::{minimal_settings, resolve};
use shardscope::plan::{Field, Origin};
use shardscope_measured::Tool;

use crate::check::FAILS;
use crate::input::Input;
use crate::measured::{Found, taken};
use crate::output::{NO_PLAN, print, refuse, tell};

/// Fewer timed steps than this tell warming up from the pace no better than a guess.
const LEAST_STEPS: u64 = 10;
/// Whose times are a run's own pace; a profiler slows it.
const PACE: [Tool; 2] = [Tool::MegatronLog, Tool::TrainerLog];
/// Whose peaks are whole; a snapshot's history may begin after the fullest moment.
const MEMORY: [Tool; 2] = [Tool::MegatronLog, Tool::MemorySummary];

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

/// A row of evidence.
#[derive(Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
struct Row {
    /// Where the run can be looked up.
    source: String,
    /// Year and month.
    date: String,
    /// Of framework, torch and driver.
    versions: String,
    /// The plan, by the fewest settings that make it.
    settings: BTreeMap<String, String>,
    /// Steps that were timed.
    steps: u64,
    /// Median of a step without the first. Unit: second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    step_seconds: Option<f64>,
    /// As the framework's log counts it. Unit: TFLOP/s of a GPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tflops_per_gpu: Option<f64>,
    /// Most that torch allocated on a rank. Unit: byte.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    max_allocated: Option<u64>,
    /// Most that torch reserved on a rank. Unit: byte.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    max_reserved: Option<u64>,
}

/// Prints the row; ends with 1 where something is lacking, which is said on standard error.
pub(crate) fn run(arguments: &ContributeArguments) -> ExitCode {
    if arguments.check {
        return match arguments.input.read() {
            Ok(pasted) => checked(&pasted.texts.iter().map(|text| text.text.as_str()).collect::<String>()),
            Err(problem) => refuse(&problem),
        };
    }
    let (input, pasted, found) = match taken(&arguments.input) {
        Ok(taken) => taken,
        Err(problem) => return refuse(&problem),
    };
    let mut answer = input.answer_of(pasted);
    if answer.estimated().is_none() {
        tell(&answer.obstacles());
        return ExitCode::from(NO_PLAN);
    }
    let Some(settings) = minimal_settings(&answer.resolution) else {
        return refuse("settings alone cannot say this plan, and a row carries nothing of the script");
    };
    let of = |tools: &'static [Tool]| {
        found.iter().map(|found: &Found| &found.measured).filter(|one| tools.contains(&one.tool))
    };
    // Of the logs of several ranks the longest tells the pace.
    let step = of(&PACE).filter_map(|one| one.step).max_by_key(|step| step.count);
    let row = Row {
        source: arguments.source.clone(),
        date: arguments.date.clone(),
        versions: arguments.versions.clone(),
        settings: settings.into_iter().filter(|(name, _)| !is_path(name)).collect(),
        steps: step.map_or(0, |step| step.count),
        step_seconds: step.map(|step| step.seconds),
        tflops_per_gpu: of(&PACE).filter_map(|one| one.tflops_per_gpu).next_back(),
        max_allocated: of(&MEMORY).filter_map(|one| one.allocated).max(),
        max_reserved: of(&MEMORY).filter_map(|one| one.reserved).max(),
    };
    // Writing to memory cannot fail, and all keys are text.
    print(&(serde_json::to_string(&row).unwrap_or_default() + "\n"));
    let mut lacking = row.lacking();
    let accelerator = answer.resolution.setting(Field::Accelerator);
    if accelerator.is_none_or(|setting| setting.origin == Origin::Default) {
        lacking.push("the accelerator was assumed: give it by --accelerator".to_owned());
    }
    told(&lacking)
}

/// Whether a setting names a file of the writer's machine: its figure (the vocabulary) is a setting of its own.
fn is_path(name: &str) -> bool {
    [Field::VocabFile, Field::TokenizerModel].iter().any(|field| field.name() == name)
}

fn checked(rows: &str) -> ExitCode {
    let mut lacking = Vec::new();
    let rows: Vec<&str> = rows.lines().filter(|line| !line.trim().is_empty()).collect();
    for (index, line) in rows.iter().enumerate() {
        let number = index + 1;
        match serde_json::from_str::<Row>(line) {
            Ok(row) => lacking.extend(row.lacking().into_iter().map(|what| format!("row {number}: {what}"))),
            Err(error) => lacking.push(format!("row {number} is none: {error}")),
        }
    }
    if rows.is_empty() {
        lacking.push("there is no row".to_owned());
    }
    told(&lacking)
}

fn told(lacking: &[String]) -> ExitCode {
    for what in lacking {
        tell(&format!("lacking: {what}\n"));
    }
    if lacking.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(FAILS) }
}

impl Row {
    /// What keeps the row from being evidence.
    fn lacking(&self) -> Vec<String> {
        let mut lacking = Vec::new();
        let mut need = |there: bool, what: &str| {
            if !there {
                lacking.push(what.to_owned());
            }
        };
        need(
            self.source.starts_with("https://"),
            "--source, an https address at which the run can be looked up",
        );
        let month =
            self.date.split_once('-').map(|(year, month)| (year.parse::<u32>(), month.parse::<u32>()));
        let dated = matches!(month, Some((Ok(2017..), Ok(1..=12))));
        need(dated, "--date, year and month of the run as YYYY-MM");
        need(!self.versions.trim().is_empty(), "--versions of framework, torch and driver");
        need(
            self.step_seconds.is_some() || self.max_allocated.is_some() || self.max_reserved.is_some(),
            "a measurement: the log has neither step times nor memory",
        );
        need(
            self.step_seconds.is_none() || self.steps >= LEAST_STEPS,
            &format!("steps: {} are timed, and {LEAST_STEPS} are needed", self.steps),
        );
        let settings: Vec<(String, String)> = self.settings.clone().into_iter().collect();
        need(resolve(&[], &settings).plan.is_some(), "settings that make a plan");
        lacking
    }
}
