//! Who sends what to whom, how much and how often.

use shardscope::estimate::traffic::{DimensionTraffic, Operation, Totals};
use shardscope::quantity::{grouped, size};
use shardscope::session::{
    Held, Shown, detour_sentence, dimension_line, explain_message, link_name, written_groups,
};
use yew::prelude::*;

use crate::app::parts::{Copy, Icon, Number, Sign, Wide};

/// Groups listed before the rest is only counted.
const LISTED: usize = 16;
/// Groups that a copy holds at most.
const COPIED: usize = 20_000;

#[derive(Properties, PartialEq)]
pub(crate) struct Props {
    pub shown: Held<Shown>,
}

#[component]
pub(crate) fn Communication(props: &Props) -> Html {
    let shown = &props.shown;
    let traffic = &shown.report.traffic;
    html! {
        <section class="panel" id="communication" aria-labelledby="communication-title">
            <header>
                <h2 id="communication-title">{ "Communication per iteration" }</h2>
                <p>{ "Messages are what is handed to a collective; wire is what a ring sends for it. A collective counts with every member, a send where it is sent." }</p>
            </header>
            if traffic.dimensions.is_empty() {
                <p>{ "One GPU talks to nobody." }</p>
            } else {
                if !shown.report.detours.is_empty() {
                    <ul class="warnings">
                        { for shown.report.detours.iter().map(|warning| html! { <li><Icon sign={Sign::Tight} />{ detour_sentence(warning) }</li> }) }
                    </ul>
                }
                <Wide label="Communication of each dimension">{ summary(shown) }</Wide>
                <h3 class="sub">{ "Dimension by dimension" }</h3>
                { for traffic.dimensions.iter().map(|of| dimension(shown, of)) }
            }
        </section>
    }
}

fn summary(shown: &Held<Shown>) -> Html {
    let traffic = &shown.report.traffic;
    let busiest = traffic.stages().into_iter().max_by_key(|stage| stage.bytes).unwrap_or_default();
    let row = |name: &str, line: String, gpu: Totals, cluster: Totals| {
        html! {
            <>
                <th scope="row">{ name.to_owned() }<span class="before">{ line }</span></th>
                <td class="number">{ grouped(gpu.calls) }</td>
                <td class="number">{ size(gpu.bytes) }</td>
                <td class="number">{ size(gpu.wire) }</td>
                <td class="number">{ grouped(cluster.calls) }</td>
                <td class="number">{ size(cluster.bytes) }</td>
                <td class="number">{ size(cluster.wire) }</td>
                <td class="number">{ size(cluster.network) }</td>
            </>
        }
    };
    html! {
        <table class="figures memory">
            <thead>
                <tr><td></td><th scope="colgroup" colspan="3" class="number">{ "one GPU of the busiest stage" }</th>
                    <th scope="colgroup" colspan="4" class="number">{ "the whole cluster" }</th></tr>
                <tr>
                    <th scope="col">{ "Dimension" }</th>
                    { for ["calls", "messages", "wire", "calls", "messages", "wire", "by network"].iter().map(|name| html! { <th scope="col" class="number">{ *name }</th> }) }
                </tr>
            </thead>
            <tbody>
                { for traffic.dimensions.iter().map(|of| html! { <tr>{ row(of.parallelism.name(), dimension_line(of), of.per_gpu(), of.cluster) }</tr> }) }
                <tr class="total">{ row("all", String::new(), busiest, traffic.cluster()) }</tr>
            </tbody>
        </table>
    }
}

fn dimension(shown: &Held<Shown>, of: &DimensionTraffic) -> Html {
    let name = of.parallelism.name();
    let listed = written_groups(&shown.plan, of.group, LISTED);
    let more = of.groups.saturating_sub(LISTED as u64);
    let text = {
        let (shown, kind) = (shown.clone(), of.group);
        Callback::from(move |()| written_groups(&shown.plan, kind, COPIED))
    };
    html! {
        <details class="dimension">
            <summary><strong>{ name }</strong><span class="soft">{ dimension_line(of) }</span><span class="end">{ format!("{} per GPU", size(of.per_gpu().bytes)) }</span></summary>
            <Wide label={format!("Messages of the {name} dimension")}>
                <table class="figures">
                    <thead><tr>
                        <th scope="col">{ "What" }</th><th scope="col">{ "Function and place" }</th>
                        <th scope="col">{ "Shape" }</th><th scope="col" class="number">{ "each" }</th>
                        <th scope="col" class="number">{ "per micro-batch" }</th><th scope="col" class="number">{ "per iteration" }</th>
                        <th scope="col">{ "hidden" }</th>
                    </tr></thead>
                    <tbody>{ for of.operations.iter().map(|operation| message(shown, of, operation)) }</tbody>
                </table>
            </Wide>
            <div class="group-list">
                <p class="soft small">{ format!("Groups: {}", dimension_line(of)) }</p>
                <Copy {text} label="Copy the groups" />
                <pre class="mono members">{ listed }{ if more > 0 { format!("… and {more} more") } else { String::new() } }</pre>
            </div>
        </details>
    }
}

fn message(shown: &Held<Shown>, of: &DimensionTraffic, operation: &Operation) -> Html {
    let shape: Vec<String> = operation.shape.iter().map(|size| size.to_string()).collect();
    let why = {
        let (shown, operation) = (shown.clone(), operation.clone());
        Callback::from(move |()| Some(explain_message(&shown.plan, &operation)))
    };
    let in_others = operation.group != of.group || operation.link != of.link;
    html! {
        <tr>
            <th scope="row">{ operation.name }<span class="before">{ operation.tensor }</span></th>
            <td><span class="mono">{ operation.collective.name() }</span>
                if in_others { { format!(", {} GPUs, {}", operation.ranks, link_name(operation.link)) } }
                <span class="before">{ operation.place.words() }</span></td>
            <td class="mono">{ format!("[{}]", shape.join(", ")) }<span class="before">{ operation.dtype }</span></td>
            <td class="number"><Number text={size(operation.bytes())} {why} /></td>
            <td class="number">{ grouped(operation.most_calls_per_micro_batch()) }</td>
            <td class="number">{ grouped(operation.most_calls()) }</td>
            <td>{ if operation.overlapped { "yes" } else { "no" } }</td>
        </tr>
    }
}
