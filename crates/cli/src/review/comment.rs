//! The comment: one table, a row for each run.

use shardscope::report::text::inert;
use shardscope::units::{Seconds, decimal, gib, percent, seconds};

use super::runs::{Run, Side};
use crate::gate::{Figures, signed, words};

/// The first line by which the comment is found again, to be replaced by the next.
const MARK: &str = "<!-- shardscope review -->";

/// The comment; empty if no run is affected.
pub(super) fn written(runs: &[Run], more: usize, page: Option<&str>) -> String {
    if runs.is_empty() {
        return String::new();
    }
    let mut out = format!("{MARK}\n### {}\n\n", title(runs));
    // Costs are shown if any of the runs has a price.
    let priced = runs.iter().flat_map(|run| [&run.before, &run.after]).flatten();
    let priced = priced.filter_map(Side::figures).any(|figures| figures.cost_per_billion_tokens.is_some());
    let mut columns = vec!["verdict", "peak memory", "step", "MFU", "GPU-hours per 10⁹ tokens"];
    columns.extend(priced.then_some("cost per 10⁹ tokens"));
    out += &format!("| run | {} |\n|---|---|{}\n", columns.join(" | "), "---:|".repeat(columns.len() - 1));
    for run in runs {
        let mut cells = cells(run, priced);
        // A single cell is used if a run has no figures after the change.
        cells.resize(columns.len(), String::new());
        out += &format!("| {} |", named(run, page));
        for cell in &cells {
            out += &if cell.is_empty() { " |".to_owned() } else { format!(" {cell} |") };
        }
        out.push('\n');
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
/// If they are something else.
pub(super) fn own(pages: &[u8]) -> Result<Option<u64>, serde_json::Error> {
    for page in serde_json::Deserializer::from_slice(pages).into_iter::<Vec<Listed>>() {
        for listed in page? {
            // Where a comment quotes ours, the mark is not at its beginning.
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
        (_, 0) => "None of the changed runs is left".to_owned(),
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

/// The run's path, as a link if there is a page to open it in.
fn named(run: &Run, page: Option<&str>) -> String {
    let path = inert(&run.path);
    let path = match (&run.after, page) {
        (Some(Side::Plan { fragment: Some(fragment), .. }), Some(page)) => {
            format!("[{path}]({}#{fragment})", page.split('#').next().unwrap_or_default())
        }
        _ => path,
    };
    let is_new = run.before.is_none() && run.after.as_ref().and_then(Side::figures).is_some();
    if is_new { path + " (new)" } else { path }
}

/// The cells of a run; fewer if there is less to show.
fn cells(run: &Run, priced: bool) -> Vec<String> {
    let after = match &run.after {
        None => return vec!["removed".to_owned()],
        Some(Side::Open(why)) => return vec![format!("no plan: {}", inert(why))],
        Some(Side::Plan { figures, .. }) => figures,
    };
    let before = run.before.as_ref().and_then(Side::figures);
    let change = |of: fn(&Figures) -> f64, shown: fn(f64) -> String| {
        let to = of(after);
        // Equal plans give equal bits, so any difference is a change.
        match before.map(of) {
            Some(from) if from != to => {
                format!("{} → {} ({})", shown(from), shown(to), signed(to / from - 1.0))
            }
            _ => shown(to),
        }
    };
    let verdict = match before {
        Some(before) if before.verdict != after.verdict => {
            format!("{} → {}", words(before.verdict), said(after))
        }
        _ => said(after),
    };
    let memory = match before {
        Some(before) if before.needs != after.needs => {
            format!("{} → {}", gib(before.needs.bytes), of_capacity(after))
        }
        _ => of_capacity(after),
    };
    // A percentage of a percentage would be read as points: both values are enough.
    let mfu = match before {
        Some(before) if before.mfu != after.mfu => {
            format!("{} → {}", percent(before.mfu), percent(after.mfu))
        }
        _ => percent(after.mfu),
    };
    let time = change(|figures| figures.step_seconds.get(), |value| seconds(Seconds::new(value)));
    let hours = change(|figures| figures.gpu_hours_per_billion_tokens, |hours| decimal(hours, 1));
    let mut cells = vec![verdict, memory, time, mfu, hours];
    if priced {
        let of = |figures: &Figures| figures.cost_per_billion_tokens;
        cells.push(match (before.and_then(of), of(after)) {
            (Some(from), Some(to)) if from != to => {
                format!("{} → {} ({})", money(from), money(to), signed(to / from - 1.0))
            }
            (_, to) => to.map(money).unwrap_or_default(),
        });
    }
    cells
}

/// An amount of money, in the currency of the price.
fn money(amount: f64) -> String {
    decimal(amount, if amount < 100.0 { 2 } else { 0 })
}

/// The verdict with what it leaves out, emphasised if the run does not fit.
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
