//! What the reader knows better than the catalog: rates measured, the length of the run, its price, a machine of their own.

use shardscope::plan::Field;
use shardscope::session::{Shown, log_text, logged};

use crate::app::act::Act;
use crate::app::desk::Desk;
use crate::app::parts::{Tag, details, group, table, tag};
use crate::app::words::own as words;

/// What they are called stands in `words::own::FIGURES`.
const FIGURES: [Field; 13] = [
    Field::MeasuredMatmulTflops,
    Field::MeasuredFastBusGbps,
    Field::MeasuredNetworkBusGbps,
    Field::TokenBudget,
    Field::PricePerGpuHour,
    Field::WattsPerGpu,
    Field::GpuMemoryGib,
    Field::GpuMemoryTbps,
    Field::GpuPeakTflops,
    Field::GpuPeakFp8Tflops,
    Field::FastLinkGbps,
    Field::FastLinkDomain,
    Field::NetworkGbps,
];

/// Fields for them; the estimate follows as for any other setting.
pub(crate) fn own_figures(desk: &Desk) -> Tag {
    let resolution = &desk.state.answer.resolution;
    let stated =
        |field: Field| resolution.setting(field).map(|setting| setting.value.written()).unwrap_or_default();
    let open = FIGURES.iter().any(|field| !stated(*field).is_empty());
    let mut fields = tag("div.own");
    for (field, label) in FIGURES.into_iter().zip(words::FIGURES) {
        let input = tag("input.field")
            .set("inputmode", "decimal")
            .set("autocomplete", "off")
            .set("title", field.about())
            .attr("value", stated(field))
            .on(desk, "keydown", Act::Set(field.name()))
            .on(desk, "change", Act::Set(field.name()));
        fields = fields.child(tag("label").key(field.name().to_owned()).text(label).child(input));
    }
    details("details.reasons", open, tag("summary").text(words::TITLE)).child(fields)
}

/// A box for the log of the run, and what it says beside the prediction.
pub(crate) fn own_log(desk: &Desk, shown: &Shown) -> Tag {
    let lines = logged(&desk.state.hand, shown);
    let text = log_text(&desk.state.hand).to_owned();
    let field = tag("textarea.field mono")
        .set("aria-label", words::LINES)
        .set("rows", "3")
        .set("spellcheck", "false")
        .set("placeholder", words::EMPTY)
        .attr("value", text.clone())
        .on(desk, "change", Act::Log);
    let mut beside = group();
    if !lines.is_empty() {
        let rows = group().each(&lines, |line| {
            let row = tag("tr").words(line.name).number(line.measured.clone());
            row.strong(line.predicted.clone()).number(line.off.clone())
        });
        beside = table(words::TABLE, "table.figures", &words::HEADS, rows);
    }
    let summary = tag("summary").text(words::LOG);
    details("details.reasons", !text.is_empty(), summary).child(field).child(beside)
}
