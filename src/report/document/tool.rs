//! `report.analysis_tool` and `report.flops`: more than the contract asks.

use super::super::analysis_tool::{DEPARTURES, Figure, compare};
use crate::estimate::FlopCounts;
use crate::json::Writer;
use crate::plan::Plan;
use crate::report::Report;

/// The figures of the 2023 tool beside ours.
pub(super) fn analysis_tool(w: &mut Writer, plan: &Plan, report: &Report) {
    let number = |figure: Figure| match figure {
        Figure::Count(count) => count,
        Figure::Bytes(bytes) => bytes.get(),
    };
    w.object("analysis_tool");
    w.list("rows");
    for row in &compare(plan, report) {
        w.object("");
        w.text("section", row.section);
        w.text("label", row.label);
        w.text(
            "unit",
            match row.tool {
                Figure::Count(_) => "count",
                Figure::Bytes(_) => "bytes",
            },
        );
        w.count("tool", number(row.tool));
        w.count("ours", number(row.ours));
        w.truth("agrees", row.agrees());
        w.list("departures");
        for reason in row.reasons() {
            w.count("", u64::from(reason.number));
        }
        w.close();
        w.close();
    }
    w.close();
    w.object("departures");
    for departure in &DEPARTURES {
        w.text(&departure.number.to_string(), departure.what);
    }
    w.close();
    w.close();
}

/// FLOPs of one step by each convention.
pub(super) fn flops(w: &mut Writer, flops: &FlopCounts) {
    w.list("flops");
    for convention in &flops.conventions() {
        w.object("");
        w.text("convention", convention.name);
        w.some_real("flops_per_step", convention.flops.map(|flops| flops.get()));
        w.text("formula", convention.formula.expression);
        w.text("meaning", convention.formula.meaning);
        w.text("source", convention.formula.source);
        w.close();
    }
    w.close();
}
