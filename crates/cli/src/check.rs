//! `shardscope check`: a gate for queues and pull requests.

use std::process::ExitCode;

use clap::{Args, ValueEnum};
use shardscope::estimate::{Memory, RankMemory, Verdict};
use shardscope::plan::Marks;
use shardscope::quantity::{gib, percent, seconds};
use shardscope::report::Report;
use shardscope::session::estimated;

use crate::input;
use crate::output::{NO_PLAN, print, refuse};

/// Exit code of a run that fails the check.
const FAILS: u8 = 1;

/// `check`.
#[derive(Args)]
pub(crate) struct CheckArguments {
    #[command(flatten)]
    input: input::Input,
    /// What counts as a failure.
    #[arg(long, value_enum, default_value_t = FailOn::Oom)]
    fail_on: FailOn,
    /// Percentage of an accelerator's memory that should stay free; with less a run is tight [default: memory_headroom, 4].
    #[arg(long, value_name = "PERCENT", value_parser = percentage)]
    headroom: Option<f64>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FailOn {
    /// More memory than an accelerator has.
    Oom,
    /// Less memory to spare than `--headroom`.
    Tight,
}

fn percentage(text: &str) -> Result<f64, String> {
    let percent: f64 = text.parse().map_err(|_| "it is no number".to_owned())?;
    (0.0..100.0).contains(&percent).then_some(percent).ok_or_else(|| "it is not from 0 to 100".to_owned())
}

/// The verdict with another headroom than the plan's own, in percent.
fn verdict(memory: &Memory, headroom: Option<f64>) -> Verdict {
    let Some(percent) = headroom else { return memory.verdict };
    let of = |rank: &RankMemory| rank.totals.verdict(memory.capacity, percent / 100.0);
    memory.ranks.iter().map(of).max().unwrap_or(memory.verdict)
}

const fn words(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Fits => "fits",
        Verdict::Tight => "fits tightly",
        Verdict::OutOfMemory => "does not fit",
    }
}

/// Prints one line; what keeps a text from making a plan goes to standard error.
pub(crate) fn run(arguments: &CheckArguments) -> ExitCode {
    let mut answer = match arguments.input.answer() {
        Ok(answer) => answer,
        Err(problem) => return refuse(&problem),
    };
    let Some((plan, found)) = estimated(&mut answer.resolution) else {
        eprint!("{}", answer.problems());
        for question in &answer.resolution.questions {
            eprintln!("open: {} ({})", question.prompt, question.name);
        }
        print("no plan\n");
        return ExitCode::from(NO_PLAN);
    };
    let verdict = verdict(&found.memory, arguments.headroom);
    print(&line(verdict, &plan.recipe().marks, &found));
    let fails = match arguments.fail_on {
        FailOn::Oom => verdict == Verdict::OutOfMemory,
        FailOn::Tight => verdict != Verdict::Fits,
    };
    ExitCode::from(if fails { FAILS } else { 0 })
}

fn line(verdict: Verdict, marks: &Marks, found: &Report) -> String {
    let (worst, time) = (&found.memory.worst, &found.time);
    format!(
        "{}{}: {} of {} on pipeline rank {} ({}); {} a step, {} MFU\n",
        words(verdict),
        marks.short(),
        gib(worst.peak_reserved),
        gib(found.memory.capacity),
        worst.pipeline_rank,
        worst.at,
        seconds(time.step),
        percent(time.mfu),
    )
}
