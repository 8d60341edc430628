//! `torch.profiler`: the row of its steps in the table of `key_averages().table()`, and their events in its trace
//! (`torch/autograd/profiler_util.py`, `torch/profiler/profiler.py`: `ProfilerStep#3`).

use std::collections::BTreeMap;

use super::figures::{Measured, Remark, Step, Tool};
use super::number::{MOST_SAMPLES, leading, median, positive, whole};

/// The profiler's name for a step; in a trace its number follows.
pub(crate) const STEP: &str = "ProfilerStep";
/// Unit of a trace's times. Unit: second.
const MICROSECOND: f64 = 1e-6;

/// The mean of the steps in a table.
pub(crate) fn read(text: &str) -> Option<Measured> {
    let mut columns: Option<(usize, usize)> = None;
    let mut best: Option<Step> = None;
    for line in text.lines() {
        if line.contains("Self CPU %") && line.contains("# of Calls") {
            let heads: Vec<&str> = cells(line).collect();
            let place = |name: &str| heads.iter().position(|head| *head == name);
            columns = place("CPU time avg").zip(place("# of Calls"));
        } else if let (Some((average, calls)), true) = (columns, line.trim_start().starts_with(STEP)) {
            let row: Vec<&str> = cells(line).collect();
            let seconds = row.get(average).and_then(|cell| duration(cell)).and_then(positive);
            let count = row.get(calls).and_then(|cell| whole(cell));
            let found = seconds.zip(count).map(|(seconds, count)| Step { seconds, count });
            // The device's own line of the same steps has no time on the host.
            best = found.filter(|found| best.is_none_or(|best| found.seconds > best.seconds)).or(best);
        }
    }
    best.map(of_step)
}

/// The median of the steps of a trace: name and microseconds.
pub(crate) fn of_events(events: Vec<(String, f64)>) -> Option<Measured> {
    let mut steps: BTreeMap<String, f64> = BTreeMap::new();
    for (name, time) in events.into_iter().take(MOST_SAMPLES) {
        // If a step is listed twice, the longer entry spans it.
        let known = steps.entry(name).or_insert(time);
        *known = known.max(time);
    }
    let count = steps.len() as u64;
    let seconds = median(steps.into_values().collect()).map(|time| time * MICROSECOND).and_then(positive)?;
    Some(of_step(Step { seconds, count }))
}

fn of_step(step: Step) -> Measured {
    Measured { step: Some(step), remark: Some(Remark::Profiled), ..Measured::by(Tool::Profiler) }
}

/// Columns are at least two blanks apart.
fn cells(line: &str) -> impl Iterator<Item = &str> {
    line.split("  ").map(str::trim).filter(|cell| !cell.is_empty())
}

/// A time as the table writes it: `12.345ms`.
fn duration(cell: &str) -> Option<f64> {
    let number = leading(cell)?;
    let unit = cell.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | '-' | '+'));
    let factor = match unit {
        "us" => MICROSECOND,
        "ms" => 1e-3,
        "s" => 1.0,
        _ => return None,
    };
    Some(number * factor)
}
