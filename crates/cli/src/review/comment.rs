//! The comment: one table, a row for each run.

use shardscope::report::text::inert;
use shardscope::units::{decimal, gib, percent, seconds};

use super::runs::{Run, Side};
use crate::gate::{Figures, signed, words};

/// By this first line the comment is found again, to be replaced by the next.
const MARK: &str = "<!-- shardscope review -->";

/// The comment; empty where no run is met.
pub(super) fn written(runs: &[Run], more: usize, page: Option<&str>) -> String {
    if runs.is_empty() {
        return String::new();
    }
    let mut out = format!("{MARK}\n### {}\n\n", title(runs));
    out += "| run | verdict | peak memory | step | MFU | GPU-hours per 10⁹ tokens |\n|---|---|---:|---:|---:|---:|\n";
    for run in runs {
        out += &row(run, page);
    }
    if more > 0 {
        out += &format!("\nand {more} more runs that are not estimated here.\n");
    }
    let failing: Vec<&Run> = runs.iter().filter(|run| !run.failures.is_empty()).collect();
    if !failing.is_empty() {
        out += "\n";
        for run in failing {
            out += &format!("- **{} fails:** {}\n", inert(&run.path), inert(&run.failures.join("; ")));
        }
    }
    let mut notes = Vec::new();
    for run in runs {
        let marks = run.after.as_ref().and_then(Side::figures).map(|figures| figures.marks.as_slice());
        for mark in marks.unwrap_or_default() {
            notes.push(format!("- {}: {}\n", inert(&run.path), inert(mark)));
        }
    }
    if !notes.is_empty() {
        out += "\nThe figures leave out:\n";
        out.extend(notes);
    }
    out
}

/// A comment as a forge lists it.
#[derive(serde::Deserialize)]
struct Listed {
    id: u64,
    body: Option<String>,
}

/// The id of the first of our comments in `pages`, lists of comments one after the other.
///
/// # Errors
/// Where that is not what they are.
pub(super) fn own(pages: &[u8]) -> Result<Option<u64>, serde_json::Error> {
    for page in serde_json::Deserializer::from_slice(pages).into_iter::<Vec<Listed>>() {
        for listed in page? {
            if listed.body.is_some_and(|body| body.starts_with(MARK)) {
                return Ok(Some(listed.id));
            }
        }
    }
    Ok(None)
}

fn title(runs: &[Run]) -> String {
    let after = || runs.iter().filter_map(|run| run.after.as_ref());
    let of = |wanted: fn(&Side) -> bool| after().filter(|side| wanted(side)).count();
    let large = of(|side| {
        side.figures().is_some_and(|figures| figures.verdict == shardscope::estimate::Verdict::OutOfMemory)
    });
    let open = of(|side| matches!(side, Side::Open(_)));
    let all = after().count();
    let mut title = match (large, all) {
        (_, 0) => "No run is left of those that changed".to_owned(),
        (0, 1) if open == 0 => "The changed run fits".to_owned(),
        (0, _) if open == 0 => format!("All {all} changed runs fit"),
        (0, _) => format!("{} of {all} changed runs fit", all - open),
        (_, 1) => "The changed run does not fit".to_owned(),
        (large, _) => {
            format!("{large} of {all} changed runs {} not fit", if large == 1 { "does" } else { "do" })
        }
    };
    if open > 0 {
        title += &format!(", {open} cannot be estimated");
    }
    title
}

fn row(run: &Run, page: Option<&str>) -> String {
    let path = inert(&run.path);
    let path = match (&run.after, page) {
        (Some(Side::Plan { fragment: Some(fragment), .. }), Some(page)) => {
            format!("[{path}]({}#{fragment})", page.split('#').next().unwrap_or_default())
        }
        _ => path,
    };
    let (before, after) = (run.before.as_ref(), run.after.as_ref());
    let figures = (before.and_then(Side::figures), after.and_then(Side::figures));
    match (after, figures) {
        (None, _) => format!("| {path} | removed | | | | |\n"),
        (Some(Side::Open(why)), _) => format!("| {path} | no plan: {} | | | | |\n", inert(why)),
        (Some(_), (Some(before), Some(after))) => {
            let verdict = if before.verdict == after.verdict {
                said(after)
            } else {
                format!("{} → {}", words(before.verdict), said(after))
            };
            let change = |from: f64, to: f64, shown: fn(f64) -> String| {
                let apart = to / from - 1.0;
                if from == to {
                    shown(to)
                } else {
                    format!("{} → {} ({})", shown(from), shown(to), signed(apart))
                }
            };
            let memory = if before.needs == after.needs {
                of_capacity(after)
            } else {
                format!("{} → {}", gib(before.needs.bytes), of_capacity(after))
            };
            let time = change(before.step_seconds.get(), after.step_seconds.get(), |value| {
                seconds(shardscope::units::Seconds::new(value))
            });
            let mfu = if before.mfu == after.mfu {
                percent(after.mfu)
            } else {
                format!("{} → {}", percent(before.mfu), percent(after.mfu))
            };
            let hours =
                change(before.gpu_hours_per_billion_tokens, after.gpu_hours_per_billion_tokens, hours_of);
            format!("| {path} | {verdict} | {memory} | {time} | {mfu} | {hours} |\n")
        }
        (Some(_), (_, after)) => after.map_or_else(String::new, |after| {
            let new = if before.is_none() { " (new)" } else { "" };
            format!(
                "| {path}{new} | {} | {} | {} | {} | {} |\n",
                said(after),
                of_capacity(after),
                seconds(after.step_seconds),
                percent(after.mfu),
                hours_of(after.gpu_hours_per_billion_tokens),
            )
        }),
    }
}

/// The verdict with what it leaves out, stressed where the run does not fit.
fn said(figures: &Figures) -> String {
    let verdict = words(figures.verdict);
    let stress = if figures.verdict == shardscope::estimate::Verdict::OutOfMemory { "**" } else { "" };
    format!("{stress}{verdict}{stress}{}", inert(&figures.marked))
}

fn of_capacity(figures: &Figures) -> String {
    format!(
        "{} of {}{} ({})",
        gib(figures.needs.bytes),
        gib(figures.capacity),
        figures.needs.condition(),
        inert(&figures.accelerator)
    )
}

fn hours_of(hours: f64) -> String {
    decimal(hours, 1)
}
