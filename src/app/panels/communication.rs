//! Who sends what to whom, how much and how often.

use shardscope::estimate::collective::Algorithm;
use shardscope::estimate::traffic::{DimensionTraffic, Operation, Totals};
use shardscope::plan::Plan;
use shardscope::session::{PtrEq, Shown, detour_sentence, dimension_line, link_name, written_groups};
use shardscope::units::{grouped, size};
use yew::prelude::*;

use super::panel::{Panel, Story};
use crate::app::panel_id::PanelId;
use crate::app::ui::Explained;
use crate::app::widgets::{CopyButton, Number, Sign, Term, heads, icon, named, pair, section, wide};

pub(super) const PANEL: Panel = Panel {
    id: PanelId::Communication,
    tab: Some("Communication"),
    view: |shown| communication(&shown),
    story: Some(Story {
        title: "What is sent",
        text: |shown| {
            let stages = shown.report.traffic.stages();
            let wire = stages.into_iter().map(|stage| stage.wire).max().unwrap_or_default();
            format!(
                "A GPU of the busiest stage puts {} on the wire in every step. Open a dimension to see each collective: its shape, how often it runs, and between which GPUs.",
                size(wire)
            )
        },
    }),
};

/// Groups listed before the rest is only counted.
const LISTED: usize = 16;
/// Groups that a copy holds at most.
const COPIED: usize = 20_000;

fn communication(shown: &PtrEq<Shown>) -> Html {
    let report = &shown.report;
    let about = html! {
        <>
            { "Payload is the tensor passed to the " }<Term name="collective" />
            { "; " }<Term name="wire">{ "bus traffic" }</Term>
            { " is what a ring sends per GPU (press a number for tree and in-switch). Collectives count once per rank, sends once at the sender." }
        </>
    };
    let dimensions = &report.traffic.dimensions;
    let inside = if dimensions.is_empty() {
        html! { <p>{ "Single GPU: no communication." }</p> }
    } else {
        html! {
            <>
                <ul class="warnings">
                    { for report.detours.iter().map(|warning| html! {
                        <li>{ icon(Sign::Tight) }{ detour_sentence(warning, report) }</li>
                    }) }
                </ul>
                { wide("Communication of each dimension", html! { { summary(shown) } }) }
                <h3 class="sub">{ "By dimension" }</h3>
                { for dimensions.iter().enumerate().map(|(index, of)| dimension(&shown.plan, index, of)) }
            </>
        }
    };
    section("communication", "", "Communication per step", about, html! { <>{ inside }</> })
}

fn summary(shown: &Shown) -> Html {
    let traffic = &shown.report.traffic;
    // The same GPU in every row, so that the rows add up to the last one: a dimension may peak on a different stage.
    let stages = traffic.stages();
    // `rev`: of equally busy stages the first, as everywhere else.
    let busiest = (0..stages.len()).rev().max_by_key(|stage| stages[*stage].bytes).unwrap_or_default();
    let of_stage = |stages: &[Totals]| stages.get(busiest).copied().unwrap_or_default();
    let whose = match stages.len() {
        // A single stage is every GPU.
        0 | 1 => "per GPU".to_owned(),
        _ => format!("one GPU of stage {busiest} (busiest)"),
    };
    let row = |class: Option<&'static str>, head: Html, gpu: Totals, cluster: Totals| {
        html! {
            <tr {class}>
                <th scope="row">{ head }</th>
                { for [
                    grouped(gpu.calls), size(gpu.bytes), size(gpu.wire),
                    grouped(cluster.calls), size(cluster.bytes), size(cluster.wire), size(cluster.network),
                ].into_iter().map(|figure| html! { <td class="number">{ figure }</td> }) }
            </tr>
        }
    };
    html! {
        <table class="figures memory">
            <thead>
                <tr>
                    <td></td>
                    <th class="number" scope="colgroup" colspan="3">{ whose }</th>
                    <th class="number" scope="colgroup" colspan="4">{ "whole cluster" }</th>
                </tr>
                { heads(&[
                    "Dimension", ">calls", ">payload", ">bus traffic", ">calls", ">payload", ">bus traffic", ">inter-node",
                ]) }
            </thead>
            <tbody>
                { for traffic.dimensions.iter().map(|of| row(
                    None,
                    pair(html! { { named(of.parallelism.name()) } }, dimension_line(of)),
                    of_stage(&of.stages),
                    of.cluster,
                )) }
                { row(
                    Some("total"),
                    html!("all"),
                    of_stage(&stages),
                    traffic.cluster(),
                ) }
            </tbody>
        </table>
    }
}

fn dimension(plan: &Plan, index: usize, of: &DimensionTraffic) -> Html {
    let name = of.parallelism.name();
    let line = dimension_line(of);
    // The table above shows one stage; a GPU of another may send more in this dimension.
    let even = of.stages.iter().all(|stage| stage.bytes == of.per_gpu().bytes);
    let mut listed = written_groups(plan, of.group, LISTED);
    // `1..`: exactly as many groups as are listed have no rest.
    if let Some(more @ 1..) = of.groups.checked_sub(LISTED as u64) {
        listed += &format!("… and {} more", grouped(more));
    }
    let copied = {
        // Made when pressed: the groups of a large cluster are megabytes of text.
        let (plan, group) = (plan.clone(), of.group);
        Callback::from(move |()| written_groups(&plan, group, COPIED))
    };
    html! {
        <details class="dimension">
            <summary>
                <strong>{ name }</strong>
                <span class="soft">{ &line }</span>
                <span class="end">{ format!("{}{} per GPU", if even { "" } else { "up to " }, size(of.per_gpu().bytes)) }</span>
            </summary>
            { wide(format!("{name}-parallel collectives"), html! { <table class="figures">
                    <thead>
                        { heads(&[
                            "What", "Function and place", "Shape", ">payload", ">bus traffic", ">per micro-batch",
                            ">per step", "overlapped",
                        ]) }
                    </thead>
                    <tbody>
                        { for of.operations.iter().enumerate().map(|(place, one)| operation(of, one, (index, place))) }
                    </tbody>
                </table> }) }
            <div class="group-list">
                <p class="soft small">{ format!("Groups: {line}") }</p>
                <CopyButton label="Copy the groups" text={copied} />
                <pre class="mono members" tabindex="0">{ listed }</pre>
            </div>
        </details>
    }
}

fn operation(of: &DimensionTraffic, operation: &Operation, (dimension, place): (usize, usize)) -> Html {
    let shape: Vec<String> = operation.shape.iter().map(ToString::to_string).collect();
    // Each operation is explained where it first appears.
    let before = of.operations.get(..place).unwrap_or_default();
    let name = operation.collective.name();
    let first = before.iter().all(|before| before.collective != operation.collective);
    let function = if first {
        html! { { named(name) } }
    } else {
        html!(name)
    };
    // Messages of a dimension mostly share its group; only different ones are shown.
    let other = (operation.group != of.group || operation.link != of.link)
        .then(|| format!(", {} GPUs, {}", operation.ranks, link_name(operation.link)));
    html! {
        <tr>
            <th scope="row">{ pair(operation.name, operation.tensor) }</th>
            <td>{ pair(html! { <>{ function }{ other }</> }, operation.place.words()) }</td>
            <td>{ pair(format!("[{}]", shape.join(", ")), operation.dtype) }</td>
            <td class="number"><Number text={size(operation.bytes())} why={Explained::Payload(dimension, place)} /></td>
            <td class="number">
                <Number text={size(operation.wire(Algorithm::Ring))} why={Explained::Wire(dimension, place)} />
            </td>
            <td class="number">{ grouped(operation.most_calls_per_micro_batch()) }</td>
            <td class="number">{ grouped(operation.most_calls()) }</td>
            <td>{ if operation.overlapped { "yes" } else { "no" } }</td>
        </tr>
    }
}
