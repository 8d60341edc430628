//! What the reader knows better than the catalog: rates measured, the length of the run, its price.

use shardscope::plan::Field;
use shardscope::session::{Shown, log_text, logged};

use crate::app::act::Act;
use crate::app::desk::Desk;
use crate::app::parts::{Tag, details, group, table, tag};

const FIGURES: [(Field, &str); 6] = [
    (Field::MeasuredMatmulTflops, "large bf16 matrix product, TFLOP/s"),
    (Field::MeasuredFastBusGbps, "all-reduce inside a node, bus GB/s"),
    (Field::MeasuredNetworkBusGbps, "all-reduce over nodes, bus GB/s per GPU"),
    (Field::TokenBudget, "tokens to train on"),
    (Field::PricePerGpuHour, "price of a GPU-hour"),
    (Field::WattsPerGpu, "watts per GPU, host and cooling included"),
];

/// Fields for them; the estimate follows as for any other setting.
pub(crate) fn own_figures(desk: &Desk) -> Tag {
    let resolution = &desk.state.answer.resolution;
    let stated =
        |field: Field| resolution.setting(field).map(|setting| setting.value.written()).unwrap_or_default();
    let open = FIGURES.iter().any(|(field, _)| !stated(*field).is_empty());
    let fields = tag("div.own").each(&FIGURES, |(field, words)| {
        let input = tag("input.field")
            .set("inputmode", "decimal")
            .set("autocomplete", "off")
            .set("title", field.about())
            .attr("value", stated(*field))
            .on(desk, "keydown", Act::Set(field.name()))
            .on(desk, "change", Act::Set(field.name()));
        tag("label").key(field.name().to_owned()).text(words).child(input)
    });
    details(
        "details.reasons",
        open,
        tag("summary").text("Your own figures: rates you measured, tokens, price"),
    )
    .child(fields)
}

/// A box for the log of the run, and what it says beside the prediction.
pub(crate) fn own_log(desk: &Desk, shown: &Shown) -> Tag {
    let lines = logged(&desk.state.hand, shown);
    let text = log_text(&desk.state.hand).to_owned();
    let field = tag("textarea.field mono")
        .set("aria-label", "Log lines of this run")
        .set("rows", "3")
        .set("spellcheck", "false")
        .set("placeholder", " iteration 10/ 500 | elapsed time per iteration (ms): 4812.3 | throughput per GPU (TFLOP/s/GPU): 421.0 |")
        .attr("value", text.clone())
        .on(desk, "change", Act::Log);
    let mut beside = group();
    if !lines.is_empty() {
        let headings = ["Figure", ">measured", ">predicted", ">off"];
        let rows = group().each(&lines, |line| {
            let row = tag("tr").words(line.name.to_owned()).number(line.measured.clone());
            row.strong(line.predicted.clone()).number(line.off.clone())
        });
        beside = table("Measured and predicted".to_owned(), "table.figures", &headings, rows);
    }
    let summary = tag("summary").text("Your own run: paste its log lines to see them beside the prediction");
    details("details.reasons", !text.is_empty(), summary).child(field).child(beside)
}
