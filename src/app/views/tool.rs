//! As the analysis tool of 2023 counts, beside ours.

use shardscope::session::{MeasuredLine, Shown, ToolBlock, ToolLine, measured_lines, tool_blocks};

use crate::app::act::Act;
use crate::app::desk::{Desk, Place};
use crate::app::parts::{Tag, details, group, heads, table, tag, wide};
use crate::app::words::{advice, tool as words};

/// Worked out only when opened.
pub(crate) fn tool(desk: &Desk, shown: &Shown) -> Tag {
    let summary = tag("summary").with("h2", words::TITLE).with("p.soft small", words::ABOUT);
    let panel = details("details.panel tool#analysis-tool", false, summary).on(
        desk,
        "toggle",
        Act::Toggle(Place::Tool),
    );
    panel.maybe(desk.look.tool_open.then(|| inside(shown)))
}

fn inside(shown: &Shown) -> Tag {
    let blocks = tool_blocks(&shown.plan, &shown.report);
    let figures = tag("table.figures").child(tag("thead").child(heads(&words::HEADS))).each(&blocks, block);
    let runs = group().each(&measured_lines(), run);
    group()
        .child(wide(words::TABLE, figures))
        .with("h3.sub", words::RUNS)
        .with("p.soft small", words::ABOUT_RUNS)
        .child(table(words::RUNS_TABLE, "table.figures", &words::RUNS_HEADS, runs))
}

fn block(block: &ToolBlock) -> Tag {
    let title = tag("th.block").set("scope", "rowgroup").set("colspan", "4").text(block.title);
    tag("tbody").child(tag("tr").child(title)).each(&block.lines, line)
}

fn line(line: &ToolLine) -> Tag {
    let why = (!line.reasons.is_empty()).then(|| {
        let reasons = tag("ul").each(&line.reasons, |reason| tag("li").text(reason));
        details("details.reasons", false, tag("summary").text(advice::WHY)).child(reasons)
    });
    let label = group().text(line.label).maybe(why);
    tag("tr")
        .cell(label)
        .number(line.tool.clone())
        .strong(line.ours.clone())
        .words(line.difference.as_deref().unwrap_or(words::AGREES))
}

fn run(line: &MeasuredLine) -> Tag {
    let (ours, tool) = (line.ours.clone(), line.tool.clone());
    tag("tr")
        .words(&line.layout)
        .words(&line.batch)
        .strong(line.measured.clone())
        .two_figures(ours.0, ours.1)
        .two_figures(tool.0, tool.1)
}
