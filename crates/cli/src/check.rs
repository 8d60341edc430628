//! `shardscope check`: a gate for queues and pull requests.

use std::process::ExitCode;

use clap::Args;
use serde::Serialize;
use shardscope::estimate::Verdict;
use shardscope::plan::Field;
use shardscope::units::seconds;

use crate::call_error::CallError;
use crate::files::from_here;
use crate::gate::{FailOn, Figures, headroom, price, signed};
use crate::input::{Answer, Changes, Input};
use crate::output::{
    Format, NO_PLAN, RED, YELLOW, colour_of, coloured, harmless, print, print_json, refuse, tell,
};

/// Exit code of a run that fails the check.
pub(crate) const FAILS: u8 = 1;

/// `check`.
#[derive(Args)]
pub(crate) struct CheckArguments {
    #[command(flatten)]
    input: Input,
    #[command(flatten)]
    gate: Gate,
    #[command(flatten)]
    against: Against,
    /// Take every file as a run of its own; files that start no training are left out.
    #[arg(long)]
    each: bool,
    /// With --each, let runs pass of which something is left open.
    #[arg(long, requires = "each")]
    pass_open: bool,
    /// How the answer is written.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// What a run is held against.
#[derive(Args, Clone, Debug)]
pub(crate) struct Gate {
    /// What else than not fitting counts as a failure: oom, tight, or slower:5% beside --against; with none nothing does, and the
    /// answer is only told.
    #[arg(long, value_name = "WHAT", value_delimiter = ',', default_value = "oom")]
    pub(crate) fail_on: Vec<FailOn>,
    /// Percentage of an accelerator's memory that should stay free, up to 50; with less a run is tight [default: memory_headroom, 4].
    #[arg(long, value_name = "PERCENT", value_parser = headroom)]
    pub(crate) headroom: Option<f64>,
    /// Price of an accelerator for an hour, in any currency, for what a billion tokens cost [default: the run's price_per_gpu_hour].
    #[arg(long, value_name = "PRICE", value_parser = price)]
    pub(crate) price: Option<f64>,
}

impl Gate {
    /// `changes` plus the headroom and the price, so that the engine applies them to every part of the verdict.
    pub(crate) fn put_into(&self, changes: &Changes) -> Changes {
        let mut changes = changes.clone();
        if let Some(price) = self.price {
            changes.settings.push((Field::PricePerGpuHour.name().to_owned(), price.to_string()));
        }
        if let Some(percent) = self.headroom {
            changes.settings.push((Field::MemoryHeadroom.name().to_owned(), (percent / 100.0).to_string()));
        }
        changes
    }

    /// Whether one of the gates needs a second run to compare with.
    pub(crate) fn compares(&self) -> bool {
        self.fail_on.iter().any(|what| matches!(what, FailOn::Slower(_)))
    }
}

/// Another run, for `--against`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Against {
    /// The run as it was, a file or a link, read with the same changes.
    #[arg(long, value_name = "FILE")]
    pub(crate) against: Option<String>,
}

/// The answer to one run.
#[derive(Serialize)]
struct Checked<'a> {
    /// The file, where each is a run.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
    /// Whether it passes.
    passes: bool,
    /// Why not.
    failures: Vec<String>,
    /// What keeps it from a plan, in one line.
    #[serde(skip_serializing_if = "Option::is_none")]
    open: Option<String>,
    #[serde(flatten)]
    figures: Option<&'a Figures>,
    /// The run that it is compared with.
    #[serde(skip_serializing_if = "Option::is_none")]
    against: Option<&'a Figures>,
    /// Share by which a step takes longer than there.
    #[serde(skip_serializing_if = "Option::is_none")]
    slower_by: Option<f64>,
}

/// Prints one line for a run; what keeps a text from being a plan goes to standard error.
pub(crate) fn run(arguments: &CheckArguments) -> ExitCode {
    // Before anything is read: the call itself makes no sense.
    if arguments.gate.compares() && arguments.against.against.is_none() {
        return refuse(&CallError::NothingToCompare { option: "--fail-on slower" });
    }
    // Into the changes, so that both runs have the same headroom and price.
    let changes = arguments.gate.put_into(&arguments.input.changes);
    let against = match &arguments.against.against {
        Some(file) => match baseline(file, &changes) {
            Ok(figures) => Some(figures),
            Err(problem) => return refuse(&problem),
        },
        None => None,
    };
    let mut worst = 0;
    if arguments.each {
        for file in &arguments.input.files {
            let one = Input { files: vec![file.clone()], changes: changes.clone() };
            let answer = match one.answer() {
                // Files that start no training are not asked about, nor counted as failing.
                Ok(answer) if answer.launches() => answer,
                Ok(_) => continue,
                Err(problem) => return refuse(&problem),
            };
            // The worst of all: 2 for what cannot be read outranks 1 for what fails.
            worst = worst.max(arguments.say(Some(from_here(file)), answer, against.as_ref()));
        }
    } else {
        let all = Input { files: arguments.input.files.clone(), changes };
        match all.answer() {
            Ok(answer) => worst = arguments.say(None, answer, against.as_ref()),
            Err(problem) => return refuse(&problem),
        }
    }
    ExitCode::from(worst)
}

/// The figures of the run that another one is compared with.
///
/// # Errors
/// Why it has none.
pub(crate) fn baseline(file: &str, changes: &Changes) -> Result<Figures, CallError> {
    let mut answer = Input { files: vec![file.to_owned()], changes: changes.clone() }.answer()?;
    let Some((plan, found)) = answer.estimated() else {
        return Err(CallError::NoBaseline { file: file.to_owned(), obstacle: answer.obstacle() });
    };
    Ok(Figures::new(&plan, &found))
}

impl CheckArguments {
    /// Prints the result of one run; returns its exit code.
    fn say(&self, file: Option<&str>, mut answer: Answer, against: Option<&Figures>) -> u8 {
        let found = answer.estimated();
        let figures = found.map(|(plan, found)| Figures::new(&plan, &found));
        let failures =
            figures.as_ref().map(|figures| figures.failures(&self.gate.fail_on, against)).unwrap_or_default();
        let code = match &figures {
            None if self.pass_open => 0,
            None => NO_PLAN,
            Some(_) if failures.is_empty() => 0,
            Some(_) => FAILS,
        };
        let slower_by = figures.as_ref().zip(against).map(|(figures, other)| figures.slower_than(other));
        let checked = Checked {
            file,
            passes: code == 0,
            open: figures.is_none().then(|| answer.obstacle()),
            figures: figures.as_ref(),
            failures,
            against,
            slower_by,
        };
        match checked.figures {
            // On standard error, so that the line stays alone on standard output.
            Some(figures) => {
                tell(&answer.warnings());
                // A line that begins with `fits` does not say why the exit code is 1; one of a run that does not fit does.
                if figures.verdict != Verdict::OutOfMemory {
                    tell(&checked.failed());
                }
            }
            None if !self.pass_open => tell(&answer.obstacles_to_caller()),
            None => {}
        }
        match self.format {
            Format::Json => print_json(&checked),
            // Only the text is coloured; Markdown is inert.
            Format::Text => print(&(checked.line(true) + "\n")),
            Format::Markdown => {
                print(&format!("- {}\n", shardscope::report::text::inert(&checked.line(false))));
            }
        }
        code
    }
}

impl Checked<'_> {
    /// What it fails for, a line each.
    fn failed(&self) -> String {
        let file = self.file.map(|file| format!("{}: ", harmless(file))).unwrap_or_default();
        let failed = coloured("fails", RED);
        self.failures.iter().map(|failure| format!("{file}{failed}: {failure}\n")).collect()
    }

    fn line(&self, colours: bool) -> String {
        let mut line = match self.file {
            Some(file) => format!("{}: ", harmless(file)),
            None => String::new(),
        };
        let Some(figures) = self.figures else {
            line += &if colours { coloured("no plan", YELLOW) } else { "no plan".to_owned() };
            if self.file.is_some() {
                line += &format!(": {}", self.open.as_deref().unwrap_or_default());
            }
            return line;
        };
        let said = figures.line();
        // The verdict is the text before the colon.
        match said.split_once(':').filter(|_| colours) {
            Some((verdict, rest)) => {
                line += &format!("{}:{rest}", coloured(verdict, colour_of(figures.verdict)));
            }
            None => line += &said,
        }
        if let (Some(other), Some(slower)) = (self.against, self.slower_by) {
            line += &format!(", {} against {}", signed(slower), seconds(other.step_seconds));
        }
        line
    }
}
