//! As the analysis tool of 2023 counts, beside ours.

use shardscope::session::{MeasuredLine, ToolBlock, ToolLine, measured_lines, tool_blocks};
use yew::prelude::*;

use crate::app::desk::{Desk, Lazy};
use crate::app::parts::{Cell, Row, head, row, table, wide};

pub(crate) fn tool(desk: &Desk) -> Html {
    let summary = html! {
        <>
            <h2>{ "Beside the analysis tool of 2023" }</h2>
            <p class="soft small">{ "The tool proposed for Megatron-LM in September 2023: what it prints for this plan, where that departs from what really happens, and the four runs it was measured with." }</p>
        </>
    };
    html! { <Lazy desk={desk.clone()} class="panel tool" id="analysis-tool" {summary} draw={inside as fn(&Desk) -> Html} /> }
}

fn inside(desk: &Desk) -> Html {
    let blocks = tool_blocks(&desk.shown.plan, &desk.shown.report);
    let headings = ["As printed by the tool", ">tool", ">here", "the tool is off by"];
    let figures = html! {
        <table class="figures">
            <thead><tr>{ for headings.into_iter().map(head) }</tr></thead>
            { for blocks.iter().map(block) }
        </table>
    };
    let runs = measured_lines().iter().map(run).collect();
    html! {
        <>
            { wide("The tool's figures beside ours", figures) }
            <h3 class="sub">{ "Its four measured runs" }</h3>
            <p class="soft small">{ "Llama2 7B as the tool models it, bf16, eight H800; peak by torch.cuda.max_memory_allocated, in GiB." }</p>
            { table("Measured runs and predictions", "", &["Layout", "Global batch, of micro-batch", ">measured", ">here", ">tool"], runs) }
        </>
    }
}

fn block(block: &ToolBlock) -> Html {
    html! {
        <tbody>
            <tr><th scope="rowgroup" colspan="4" class="block">{ block.title }</th></tr>
            { for block.lines.iter().map(|one| row(line(one), 4)) }
        </tbody>
    }
}

fn line(line: &ToolLine) -> Row {
    let label = html! {
        <>
            { line.label }
            if !line.reasons.is_empty() {
                <details class="reasons"><summary>{ "why" }</summary><ul>{ for line.reasons.iter().map(|reason| html! { <li>{ *reason }</li> }) }</ul></details>
            }
        </>
    };
    Row::of(vec![
        Cell::Drawn(label),
        Cell::Number(line.tool.clone()),
        Cell::Strong(line.ours.clone()),
        Cell::Text(line.difference.as_deref().unwrap_or("agrees").to_owned()),
    ])
}

fn run(line: &MeasuredLine) -> Row {
    let predicted = |(value, error): &(String, String)| {
        Cell::DrawnNumber(html! { <>{ value }<span class="before">{ error }</span></> })
    };
    Row::of(vec![
        Cell::Text(line.layout.clone()),
        Cell::Text(line.batch.clone()),
        Cell::Strong(line.measured.clone()),
        predicted(&line.ours),
        predicted(&line.tool),
    ])
}
