//! As the analysis tool of 2023 counts, beside ours.

use shardscope::session::{MeasuredLine, Shown, ToolBlock, ToolLine, measured_lines, tool_blocks};

use crate::app::act::Act;
use crate::app::desk::{Desk, Place};
use crate::app::parts::{Tag, details, group, heads, table, tag, wide};

/// Headings of its figures, and of its runs.
const FIGURES: [&str; 4] = ["As printed by the tool", ">tool", ">here", "the tool is off by"];
const RUNS: [&str; 5] = ["Layout", "Global batch, of micro-batch", ">measured", ">here", ">tool"];

/// Worked out only when opened.
pub(crate) fn tool(desk: &Desk, shown: &Shown) -> Tag {
    let about = "The tool proposed for Megatron-LM in September 2023: what it prints for this plan, where that departs from what really happens, and the four runs it was measured with.";
    let summary = tag("summary").with("h2", "Beside the analysis tool of 2023").with("p.soft small", about);
    let panel = details("details.panel tool#analysis-tool", false, summary).on(
        desk,
        "toggle",
        Act::Toggle(Place::Tool),
    );
    panel.maybe(desk.look.tool_open.then(|| inside(shown)))
}

fn inside(shown: &Shown) -> Tag {
    let blocks = tool_blocks(&shown.plan, &shown.report);
    let figures = tag("table.figures").child(tag("thead").child(heads(&FIGURES))).each(&blocks, block);
    let runs = group().each(&measured_lines(), run);
    group()
        .child(wide("The tool's figures beside ours".to_owned(), figures))
        .with("h3.sub", "Its four measured runs")
        .with("p.soft small", "Llama2 7B as the tool models it, bf16, eight H800; peak by torch.cuda.max_memory_allocated, in GiB.")
        .child(table("Measured runs and predictions".to_owned(), "table.figures", &RUNS, runs))
}

fn block(block: &ToolBlock) -> Tag {
    let title = tag("th.block").set("scope", "rowgroup").set("colspan", "4").text(block.title);
    tag("tbody").child(tag("tr").child(title)).each(&block.lines, line)
}

fn line(line: &ToolLine) -> Tag {
    let why = (!line.reasons.is_empty()).then(|| {
        let reasons = tag("ul").each(&line.reasons, |reason| tag("li").text(reason));
        details("details.reasons", false, tag("summary").text("why")).child(reasons)
    });
    let label = group().text(line.label).maybe(why);
    tag("tr")
        .cell(label)
        .number(line.tool.clone())
        .strong(line.ours.clone())
        .words(line.difference.as_deref().unwrap_or("agrees").to_owned())
}

fn run(line: &MeasuredLine) -> Tag {
    let (ours, tool) = (line.ours.clone(), line.tool.clone());
    tag("tr")
        .words(line.layout.clone())
        .words(line.batch.clone())
        .strong(line.measured.clone())
        .two_figures(ours.0, ours.1)
        .two_figures(tool.0, tool.1)
}
