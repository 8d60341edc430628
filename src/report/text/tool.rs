//! The 2023 analysis tool's figures beside ours.

use super::sheet::Sheet;
use crate::plan::Plan;
use crate::quantity::decimal;
use crate::report::Report;
use crate::report::analysis_tool::{DEPARTURES, compare};
use crate::text::distinct;

pub(super) fn write(sheet: &mut Sheet, plan: &Plan, report: &Report) {
    sheet.heading("As the 2023 analysis tool counts, where it differs");
    let rows = compare(plan, report);
    let differing = rows.iter().filter(|row| !row.agrees());
    let lines: Vec<Vec<String>> = differing
        .clone()
        .map(|row| {
            let reasons: Vec<String> = row.departures.iter().map(ToString::to_string).collect();
            vec![
                format!("{}: {}", row.section, row.label),
                row.tool.shown(),
                row.ours.shown(),
                format!("{}x", decimal(row.ratio(), 3)),
                reasons.join(" "),
            ]
        })
        .collect();
    sheet.table(&["figure", "the tool", "ours", "ratio", "why"], &lines);
    let mut numbers: Vec<u8> = differing.flat_map(|row| row.departures.iter().copied()).collect();
    distinct(&mut numbers);
    let named = DEPARTURES.iter().filter(|departure| numbers.contains(&departure.number));
    sheet.items(named.map(|departure| format!("{}: {}", departure.number, departure.what)));
}
