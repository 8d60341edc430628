//! `shardscope review`: what a change does to the runs that a repository launches, as a comment for its review.
//!
//! It reads two checkouts and a list of changed paths and opens no connection: the caller posts the comment.

mod comment;
mod runs;

use std::io::Read;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use crate::call_error::CallError;
use crate::check::{FAILS, Gate};
use crate::input::{Changes, MAX_FILE};
use crate::output::{print, refuse, tell};

/// A longer list of comments is not read. Unit: byte.
const MAX_LIST: u64 = 64 << 20;

/// `review`.
#[derive(Args)]
pub(crate) struct ReviewArguments {
    /// The checkout before the change.
    #[arg(long, value_name = "FOLDER")]
    before: PathBuf,
    /// The checkout after it.
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    after: PathBuf,
    /// Changed paths from the root of the checkouts; `-` takes them from standard input, a line each or ended by NUL.
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<String>,
    #[command(flatten)]
    gate: Gate,
    #[command(flatten)]
    changes: Changes,
    /// Write the comment into this file instead of standard output; where no run is met it is left empty.
    #[arg(long, value_name = "FILE")]
    comment_file: Option<PathBuf>,
    /// Address of the page, for links that open the runs in it.
    #[arg(long, value_name = "URL")]
    page: Option<String>,
}

/// Writes the comment; ends with 1 where a run fails.
pub(crate) fn run(arguments: &ReviewArguments) -> ExitCode {
    match review(arguments) {
        Ok(code) => code,
        Err(problem) => refuse(&problem),
    }
}

fn review(arguments: &ReviewArguments) -> Result<ExitCode, CallError> {
    // A misspelt setting is one error of the call rather than one of each run.
    arguments.changes.checked()?;
    // Without links in them, so that `runs::side` can check with `starts_with` what is inside.
    let root = |folder: &PathBuf| {
        folder
            .canonicalize()
            .map_err(|cause| CallError::Unreadable { path: folder.display().to_string(), cause })
    };
    let (before, after) = (root(&arguments.before)?, root(&arguments.after)?);
    let changed = paths(&arguments.paths)?;
    let (runs, more) = runs::runs(
        &before,
        &after,
        &changed,
        &arguments.gate.put_into(&arguments.changes),
        &arguments.gate.fail_on,
    );
    let comment = comment::written(&runs, more, arguments.page.as_deref());
    match &arguments.comment_file {
        Some(file) => std::fs::write(file, &comment)
            .map_err(|cause| CallError::Unwritable { path: file.display().to_string(), cause })?,
        None => print(&comment),
    }
    let failing = runs.iter().filter(|run| !run.failures.is_empty());
    for run in failing.clone() {
        tell(&format!("{}: {}\n", run.path, run.failures.join("; ")));
    }
    Ok(if failing.count() > 0 { ExitCode::from(FAILS) } else { ExitCode::SUCCESS })
}

/// The paths given, with `-` replaced by those from standard input.
fn paths(given: &[String]) -> Result<Vec<String>, CallError> {
    let mut paths = Vec::new();
    for path in given {
        if path == "-" {
            let mut text = String::new();
            let read = std::io::stdin().lock().take(MAX_FILE).read_to_string(&mut text);
            read.map_err(CallError::UnreadablePaths)?;
            // `git diff -z` ends each path with NUL, which no path can contain.
            let by = if text.contains('\0') { '\0' } else { '\n' };
            paths.extend(text.split(by).filter(|path| !path.is_empty()).map(str::to_owned));
        } else {
            paths.push(path.clone());
        }
    }
    Ok(paths)
}

/// Prints the id of the comment that begins as ours do; nothing if there is none.
pub(crate) fn own_comment() -> ExitCode {
    let mut list = Vec::new();
    if let Err(error) = std::io::stdin().lock().take(MAX_LIST).read_to_end(&mut list) {
        return refuse(&format!("the list of comments cannot be read: {error}"));
    }
    match comment::own(&list) {
        Ok(Some(id)) => print(&format!("{id}\n")),
        Ok(None) => {}
        Err(error) => {
            return refuse(&format!("the list of comments is not in the format of a forge's API: {error}"));
        }
    }
    ExitCode::SUCCESS
}
