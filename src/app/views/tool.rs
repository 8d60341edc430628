//! As the analysis tool of 2023 counts, beside ours.

use shardscope::session::{Held, MeasuredLine, Shown, ToolBlock, ToolLine, measured_lines, tool_blocks};
use yew::prelude::*;

use crate::app::parts::Wide;

#[derive(Properties, PartialEq)]
pub(crate) struct Props {
    pub shown: Held<Shown>,
}

#[component]
pub(crate) fn Tool(props: &Props) -> Html {
    let open = use_state(|| false);
    let ontoggle = {
        let open = open.clone();
        move |event: Event| {
            let now = event
                .target_dyn_into::<web_sys::Element>()
                .is_some_and(|details| details.has_attribute("open"));
            open.set(now);
        }
    };
    html! {
        <details class="panel tool" id="analysis-tool" {ontoggle}>
            <summary>
                <h2>{ "Beside the analysis tool of 2023" }</h2>
                <p class="soft small">{ "The tool proposed for Megatron-LM in September 2023: what it prints for this plan, where that departs from what really happens, and the four runs it was measured with." }</p>
            </summary>
            if *open {
                <Figures shown={props.shown.clone()} />
                <Runs />
            }
        </details>
    }
}

#[component]
fn Figures(props: &Props) -> Html {
    let blocks = use_memo(props.shown.clone(), |shown| tool_blocks(&shown.plan, &shown.report));
    html! {
        <Wide label="The tool's figures beside ours">
            <table class="figures">
                <thead><tr><th scope="col">{ "As printed by the tool" }</th><th scope="col" class="number">{ "tool" }</th>
                    <th scope="col" class="number">{ "here" }</th><th scope="col">{ "the tool is off by" }</th></tr></thead>
                { for blocks.iter().map(block) }
            </table>
        </Wide>
    }
}

fn block(block: &ToolBlock) -> Html {
    html! {
        <tbody>
            <tr><th scope="rowgroup" colspan="4" class="block">{ block.title }</th></tr>
            { for block.lines.iter().map(line) }
        </tbody>
    }
}

fn line(line: &ToolLine) -> Html {
    html! {
        <tr>
            <th scope="row">{ line.label }
                if !line.reasons.is_empty() {
                    <details class="reasons"><summary>{ "why" }</summary><ul>{ for line.reasons.iter().map(|reason| html! { <li>{ *reason }</li> }) }</ul></details>
                }
            </th>
            <td class="number">{ &line.tool }</td>
            <td class="number strong">{ &line.ours }</td>
            <td>{ line.difference.as_deref().unwrap_or("agrees").to_owned() }</td>
        </tr>
    }
}

/// The four published runs.
#[component]
fn Runs() -> Html {
    let lines = use_memo((), |()| measured_lines());
    html! {
        <>
            <h3 class="sub">{ "Its four measured runs" }</h3>
            <p class="soft small">{ "Llama2 7B as the tool models it, bf16, eight H800; peak by torch.cuda.max_memory_allocated, in GiB." }</p>
            <Wide label="Measured runs and predictions">
                <table class="figures">
                    <thead><tr><th scope="col">{ "Layout" }</th><th scope="col">{ "Global batch, of micro-batch" }</th>
                        <th scope="col" class="number">{ "measured" }</th><th scope="col" class="number">{ "here" }</th><th scope="col" class="number">{ "tool" }</th></tr></thead>
                    <tbody>{ for lines.iter().map(run) }</tbody>
                </table>
            </Wide>
        </>
    }
}

fn run(line: &MeasuredLine) -> Html {
    html! {
        <tr>
            <th scope="row">{ &line.layout }</th>
            <td>{ &line.batch }</td>
            <td class="number strong">{ &line.measured }</td>
            <td class="number">{ &line.ours.0 }<span class="before">{ &line.ours.1 }</span></td>
            <td class="number">{ &line.tool.0 }<span class="before">{ &line.tool.1 }</span></td>
        </tr>
    }
}
