//! The figures of the analysis tool of 2023, next to ours.

use shardscope::session::{MeasuredLine, PtrEq, Shown, ToolBlock, ToolLine, measured_lines, tool_blocks};
use yew::prelude::*;

use super::panel::Panel;
use crate::app::panel_id::PanelId;
use crate::app::widgets::{heads, pair, section, wide};

pub(super) const PANEL: Panel =
    Panel { id: PanelId::Tool, tab: None, view: |shown| tool(&shown), story: None };

fn tool(shown: &PtrEq<Shown>) -> Html {
    let about = html!(
        "The tool proposed for Megatron-LM in September 2023: what it prints for this plan, where it differs from real runs, and the four runs that it was checked against."
    );
    let blocks = tool_blocks(&shown.plan, &shown.report);
    section(
        "analysis-tool",
        "tool",
        "Comparison with the 2023 Megatron analysis tool",
        about,
        html! { <>if blocks.is_empty() {
            <p>{ "The tool knows no encoder: it has no figures for this plan." }</p>
        } else {
            { wide("The tool's figures beside ours", html! { <table class="figures">
                <thead>{ heads(&["As printed by the tool", ">tool", ">here", "the tool is off by"]) }</thead>
                { for blocks.iter().map(block) }
            </table> }) }
        }
        <h3 class="sub">{ "Its four measured runs" }</h3>
        <p class="soft small">
            { "Llama2 7B as the tool models it, bf16, eight H800; peak by torch.cuda.max_memory_allocated, in GiB." }
        </p>
        { wide("Measured runs and predictions", html! { <table class="figures">
                <thead>{ heads(&["Layout", "Global batch, of micro-batch", ">measured", ">here", ">tool"]) }</thead>
                <tbody>{ for measured_lines().iter().map(run) }</tbody>
            </table> }) }</> },
    )
}

fn block(block: &ToolBlock) -> Html {
    html! {
        <tbody>
            <tr><th class="block" scope="rowgroup" colspan="4">{ block.title }</th></tr>
            { for block.lines.iter().map(line) }
        </tbody>
    }
}

fn line(line: &ToolLine) -> Html {
    html! {
        <tr>
            <th scope="row">
                { line.label }
                if !line.reasons.is_empty() {
                    <details class="reasons">
                        <summary>{ "why" }</summary>
                        <ul>{ for line.reasons.iter().map(|reason| html! { <li>{ *reason }</li> }) }</ul>
                    </details>
                }
            </th>
            <td class="number">{ &line.tool }</td>
            <td class="number strong">{ &line.ours }</td>
            // `difference` is `None` if both agree to the tool's printed precision.
            <td>{ line.difference.as_deref().unwrap_or("agrees") }</td>
        </tr>
    }
}

fn run(line: &MeasuredLine) -> Html {
    html! {
        <tr>
            <th scope="row">{ &line.layout }</th>
            <td>{ &line.batch }</td>
            <td class="number strong">{ &line.measured }</td>
            <td class="number">{ pair(line.ours.0.clone(), line.ours.1.clone()) }</td>
            <td class="number">{ pair(line.tool.0.clone(), line.tool.1.clone()) }</td>
        </tr>
    }
}
