//! The report as one JSON document, `shardscope/report/1`: the page's download, the JavaScript API and the
//! terminal give the same one. Bare numbers only: bytes, counts, seconds, FLOPs, bytes per second.

mod advice;
mod communication;
mod memory;
mod parameters;
mod settings;
mod time;
mod tool;
mod topology;
mod utilisation;

use serde_json::{Map, Value, json};

use super::Report;
use crate::anatomy::Symbols;
use crate::intake::Resolution;
use crate::plan::Plan;
use crate::text::Source;

/// The name and version of the document's form; raised when a field is renamed.
pub const SCHEMA: &str = "shardscope/report/1";

/// The document for what `source` resolved to, with its report when there is a plan.
#[must_use]
pub fn document(source: &Source, resolution: &Resolution, report: Option<&Report>) -> Value {
    let body = match (&resolution.plan, report) {
        (Some(plan), Some(report)) => body(plan, report),
        _ => Value::Null,
    };
    json!({
        "schema": SCHEMA,
        "settings": settings::settings(source, &resolution.settings),
        "questions": settings::questions(&resolution.questions),
        "diagnostics": settings::diagnostics(source, &resolution.diagnostics),
        "report": body,
    })
}

fn body(plan: &Plan, report: &Report) -> Value {
    let mut explanations = Map::new();
    let x = Symbols::of(plan);
    json!({
        "parameters": parameters::parameters(&report.parameters),
        "topology": topology::topology(plan),
        "memory": memory::memory(plan, &report.memory, &mut explanations),
        "communication": communication::communication(&x, &report.traffic, &mut explanations),
        "utilisation": utilisation::utilisation(&report.utilisation),
        "time": time::time(&report.time, &report.unknowns, &mut explanations),
        "advice": advice::advice(&report.advice),
        "flops": tool::flops(&report.flops),
        "analysis_tool": tool::analysis_tool(plan, report),
        "explanations": explanations,
    })
}
