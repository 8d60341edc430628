//! `shardscope measured`: what a run's own tools say of it, beside what was predicted.

use std::process::ExitCode;

use clap::Args;
use serde::Serialize;
use shardscope::link::Pasted;
use shardscope::plan::Plan;
use shardscope::report::Report;
use shardscope::session::{Compared, compared};
use shardscope_measured::{MOST_BYTES, Measured, Remark, Unread, is_launch_text, read};

use crate::call_error::CallError;
use crate::files::bytes_up_to;
use crate::gate::signed;
use crate::input::{Input, fragment};
use crate::output::{Format, NO_PLAN, harmless, print, print_json, refuse, tell};

/// `measured`.
#[derive(Args)]
pub(crate) struct MeasuredArguments {
    /// Launch script and settings files, or a link, and what was measured, in any order: logs of Megatron-LM or of Hugging Face's
    /// Trainer, trainer_state.json, PyTorch's memory snapshots, summaries and profiles, what nvidia-smi printed.
    #[command(flatten)]
    input: Input,
    /// How the answer is written.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// A tool's figures, and the file that they are from.
pub(crate) struct MeasuredFile {
    pub(crate) file: String,
    pub(crate) measured: Measured,
}

/// One figure, predicted and measured. Numbers are bare, in the unit beside them.
#[derive(Serialize)]
struct MeasuredLine {
    figure: &'static str,
    unit: &'static str,
    predicted: f64,
    measured: f64,
    /// Share of the measured figure by which the prediction is above it.
    off: f64,
    by: &'static str,
    file: String,
    #[serde(skip_serializing_if = "str::is_empty")]
    remark: &'static str,
    #[serde(skip)]
    words: [String; 2],
}

/// Prints the figures side by side.
pub(crate) fn run(arguments: &MeasuredArguments) -> ExitCode {
    let (input, pasted, found) = match taken(&arguments.input) {
        Ok(taken) => taken,
        Err(problem) => return refuse(&problem),
    };
    if found.is_empty() {
        return refuse(
            "no file has a measurement that is read here: a log, a memory snapshot, a profile, nvidia-smi's lines",
        );
    }
    if pasted.texts.is_empty() && pasted.settings.is_empty() {
        return refuse("no run is given: add its launch script or a link");
    }
    let mut answer = input.answer_of(pasted);
    let Some((plan, report)) = answer.estimated() else {
        tell(&answer.obstacles_to_caller());
        return ExitCode::from(NO_PLAN);
    };
    tell(&answer.problems());
    let lines: Vec<MeasuredLine> = found.iter().flat_map(|found| lines(found, &plan, &report)).collect();
    match arguments.format {
        Format::Text => print(&lines.iter().map(MeasuredLine::text).collect::<String>()),
        Format::Json => print_json(&lines),
        Format::Markdown => {
            print("| figure | predicted | measured | off | by |\n|---|---:|---:|---:|---|\n");
            print(&lines.iter().map(MeasuredLine::markdown).collect::<String>());
        }
    }
    ExitCode::SUCCESS
}

/// The run without the files that are measurements, what was read of it, and the measurements.
///
/// # Errors
/// What cannot be read, including a pickle that is not a memory snapshot.
pub(crate) fn taken(input: &Input) -> Result<(Input, Pasted, Vec<MeasuredFile>), CallError> {
    let mut found = Vec::new();
    let mut files = Vec::new();
    for file in &input.files {
        // Standard input can be read only once and a link is not a file: both are the run's to read.
        if file == "-" || fragment(file).is_some() {
            files.push(file.clone());
            continue;
        }
        let name = file.rsplit(['/', '\\']).next().unwrap_or(file);
        let bytes = bytes_up_to(file, MOST_BYTES as u64)?;
        // A notebook keeps what its training printed, and starts a run all the same.
        if is_launch_text(name, &String::from_utf8_lossy(bytes.get(..2).unwrap_or_default())) {
            files.push(file.clone());
            continue;
        }
        match read(&bytes) {
            Ok(all) => {
                found.extend(all.into_iter().map(|measured| MeasuredFile { file: name.to_owned(), measured }))
            }
            Err(Unread::Nothing) => files.push(file.clone()),
            Err(why) => return Err(CallError::Unmeasured { path: file.clone(), why }),
        }
    }
    let input = Input { files, changes: input.changes.clone() };
    let mut pasted = input.read()?;
    // Standard input was read with the run; every other text comes from a file that was examined above.
    pasted.texts.retain(|text| match read(text.text.as_bytes()) {
        Ok(all) if text.name == "-" => {
            found.extend(all.into_iter().map(|measured| MeasuredFile { file: "-".to_owned(), measured }));
            false
        }
        _ => true,
    });
    Ok((input, pasted, found))
}

fn lines(found: &MeasuredFile, plan: &Plan, report: &Report) -> Vec<MeasuredLine> {
    let line = |one: Compared| MeasuredLine {
        figure: one.name,
        unit: one.unit,
        predicted: one.predicted,
        measured: one.measured,
        off: one.off(),
        by: found.measured.tool.name(),
        file: found.file.clone(),
        remark: found.measured.remark.map_or("", Remark::words),
        words: one.words,
    };
    compared(&found.measured, plan, report).into_iter().map(line).collect()
}

impl MeasuredLine {
    fn text(&self) -> String {
        let [predicted, measured] = &self.words;
        let remark = if self.remark.is_empty() { String::new() } else { format!("; {}", self.remark) };
        let (figure, off, by, file) = (self.figure, signed(self.off), self.by, harmless(&self.file));
        format!("{figure}: predicted {predicted}, measured {measured} ({off}) by {by} in {file}{remark}\n")
    }

    fn markdown(&self) -> String {
        let [predicted, measured] = &self.words;
        let file = shardscope::report::text::inert(&harmless(&self.file));
        let (figure, off, by) = (self.figure, signed(self.off), self.by);
        format!("| {figure} | {predicted} | {measured} | {off} | {by}: {file} |\n")
    }
}
