//! The 2023 analysis tool's figures next to ours.

use super::sheet::Sheet;
use crate::Report;
use crate::analysis_tool::{compare, departures};
use shardscope_plan::Plan;
use shardscope_units::decimal;

pub(super) fn write(sheet: &mut Sheet, plan: &Plan, report: &Report) {
    sheet.heading("As the 2023 analysis tool counts, where it differs");
    let rows = compare(plan, report);
    let (mut lines, mut numbers): (Vec<Vec<String>>, Vec<u8>) = (Vec::new(), Vec::new());
    for row in &rows {
        // Only differences: the full comparison is in the document.
        if row.agrees() {
            continue;
        }
        let mut reasons = String::new();
        for reason in row.departures {
            reasons += if reasons.is_empty() { "" } else { " " };
            reasons += &u64::from(*reason).to_string();
        }
        lines.push(vec![
            format!("{}: {}", row.section, row.label),
            row.tool.shown(),
            row.ours.shown(),
            format!("{}x", decimal(row.ratio(), 3)),
            reasons,
        ]);
        // Each number is listed once below, however many rows it explains.
        numbers.extend_from_slice(row.departures);
    }
    sheet.table(&["figure", "the tool", "ours", "ratio", "why"], &lines);
    let mut named = Vec::new();
    for departure in departures() {
        if numbers.contains(&departure.number) {
            named.push(format!("{}: {}", departure.number, departure.what));
        }
    }
    sheet.items(&named);
}
