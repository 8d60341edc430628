//! `report.analysis_tool` and `report.flops`: more than the contract asks.

use serde_json::{Map, Value, json};

use super::super::analysis_tool::{DEPARTURES, Figure, compare};
use crate::estimate::FlopCounts;
use crate::plan::Plan;
use crate::report::Report;

/// The figures of the 2023 tool beside ours.
pub(super) fn analysis_tool(plan: &Plan, report: &Report) -> Value {
    let number = |figure: Figure| match figure {
        Figure::Count(count) => count,
        Figure::Bytes(bytes) => bytes.get(),
    };
    let rows: Vec<Value> = compare(plan, report)
        .iter()
        .map(|row| {
            json!({
                "section": row.section,
                "label": row.label,
                "unit": match row.tool { Figure::Count(_) => "count", Figure::Bytes(_) => "bytes" },
                "tool": number(row.tool),
                "ours": number(row.ours),
                "agrees": row.agrees(),
                "departures": row.reasons().map(|reason| reason.number).collect::<Vec<u8>>(),
            })
        })
        .collect();
    let departures: Map<String, Value> = DEPARTURES
        .iter()
        .map(|departure| (departure.number.to_string(), Value::from(departure.what)))
        .collect();
    json!({ "rows": rows, "departures": departures })
}

/// FLOPs of one step by each convention.
pub(super) fn flops(flops: &FlopCounts) -> Value {
    flops
        .conventions()
        .iter()
        .map(|convention| {
            json!({
                "convention": convention.name,
                "flops_per_step": convention.flops.map(|flops| flops.get()),
                "formula": convention.formula.expression,
                "meaning": convention.formula.meaning,
                "source": convention.formula.source,
            })
        })
        .collect()
}
