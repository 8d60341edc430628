//! `shardscope report`: the same document as the page's download and the JavaScript package.

use std::process::ExitCode;

use clap::Args;
use shardscope::report::document::{Document, Lists};
use shardscope::report::text;

use crate::input;
use crate::output::{Format, NO_PLAN, print, print_prose, refuse, tell};

/// `report`.
#[derive(Args)]
pub(crate) struct ReportArguments {
    #[command(flatten)]
    input: input::Input,
    /// How the report is written.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// In a document, write every process group and label as a list, also where there are more than 4,096 ranks, and every message,
    /// also where there are more than 200.
    #[arg(long, visible_alias = "full-groups")]
    full_lists: bool,
}

/// Prints the report, and diagnostics to standard error; with `--format json` a document even without a plan.
pub(crate) fn run(arguments: &ReportArguments) -> ExitCode {
    let mut answer = match arguments.input.answer() {
        Ok(answer) => answer,
        Err(problem) => return refuse(&problem),
    };
    let found = answer.estimated().map(|(_, report)| report);
    let plan = answer.resolution.plan.as_ref();
    let written = match (arguments.format, plan, &found) {
        // A document is written without a plan as well: it carries the diagnostics and the open questions.
        (Format::Json, ..) => {
            let lists = if arguments.full_lists { Lists::Full } else { Lists::Short };
            let document = Document::with_lists(&answer.source, &answer.resolution, found.as_ref(), lists);
            Some(document.to_json(true))
        }
        (Format::Markdown, Some(plan), Some(report)) => Some(text::markdown(plan, report)),
        (Format::Text, Some(plan), Some(report)) => Some(text::text(plan, report)),
        _ => None,
    };
    if let Some(written) = written {
        let written = written + "\n";
        match arguments.format {
            Format::Text => print_prose(&written),
            Format::Json | Format::Markdown => print(&written),
        }
    }
    let said = if found.is_some() { answer.problems() } else { answer.obstacles_to_caller() };
    tell(&said);
    if found.is_some() { ExitCode::SUCCESS } else { ExitCode::from(NO_PLAN) }
}
