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

use super::Report;
use super::tree::Explanations;
use crate::anatomy::Symbols;
use crate::intake::Resolution;
use crate::json::Writer;
use crate::plan::Plan;
use crate::text::Source;

/// The name and version of the document's form; raised when a field is renamed.
pub const SCHEMA: &str = "shardscope/report/1";

/// The document for what `source` resolved to, with its report when there is a plan; in one line, or indented.
#[must_use]
pub fn document(source: &Source, resolution: &Resolution, report: Option<&Report>, indented: bool) -> String {
    let mut w = Writer::new(indented);
    w.object("");
    w.text("schema", SCHEMA);
    settings::settings(&mut w, source, &resolution.settings);
    settings::questions(&mut w, &resolution.questions);
    settings::diagnostics(&mut w, source, &resolution.diagnostics);
    match (&resolution.plan, report) {
        (Some(plan), Some(report)) => body(&mut w, plan, report),
        _ => w.null("report"),
    }
    w.finish()
}

fn body(w: &mut Writer, plan: &Plan, report: &Report) {
    let mut explanations = Explanations::default();
    let x = Symbols::of(plan);
    w.object("report");
    parameters::parameters(w, &report.parameters);
    topology::topology(w, plan);
    memory::memory(w, plan, &report.memory, &mut explanations);
    communication::communication(w, &x, &report.traffic, &mut explanations);
    utilisation::utilisation(w, &report.utilisation);
    time::time(w, &report.time, &report.unknowns, &mut explanations);
    advice::advice(w, &report.advice);
    tool::flops(w, &report.flops);
    tool::analysis_tool(w, plan, report);
    explanations.write(w);
    w.close();
}
