//! Who sends what to whom, how much and how often.

use shardscope::estimate::collective::Algorithm;
use shardscope::estimate::traffic::{DimensionTraffic, Operation, Totals};
use shardscope::quantity::{grouped, size};
use shardscope::session::{
    Shown, detour_sentence, dimension_line, explain_message, explain_wire, link_name, written_groups,
};
use yew::prelude::*;

use crate::app::desk::Desk;
use crate::app::parts::{Cell, Copy, Row, Sign, head, icon, number, row, table, wide};

/// Groups listed before the rest is only counted.
const LISTED: usize = 16;
/// Groups that a copy holds at most.
const COPIED: usize = 20_000;

pub(crate) fn communication(desk: &Desk) -> Html {
    let report = &desk.shown.report;
    html! {
        <section class="panel" id="communication" aria-labelledby="communication-title">
            <header>
                <h2 id="communication-title">{ "Communication per iteration" }</h2>
                <p>{ "Messages are what is handed to a collective; wire is what a ring sends for it, per GPU; its number tells a tree's and a switch's too. A collective counts with every member, a send where it is sent." }</p>
            </header>
            if report.traffic.dimensions.is_empty() {
                <p>{ "One GPU talks to nobody." }</p>
            } else {
                <ul class="warnings">
                    { for report.detours.iter().map(|warning| html! { <li>{ icon(Sign::Tight) }{ detour_sentence(warning) }</li> }) }
                </ul>
                { wide("Communication of each dimension", summary(&desk.shown)) }
                <h3 class="sub">{ "Dimension by dimension" }</h3>
                { for report.traffic.dimensions.iter().enumerate().map(|(index, of)| dimension(desk, index, of)) }
            }
        </section>
    }
}

fn summary(shown: &Shown) -> Html {
    let traffic = &shown.report.traffic;
    let busiest = traffic.stages().into_iter().max_by_key(|stage| stage.bytes).unwrap_or_default();
    let mut rows: Vec<Row> = traffic
        .dimensions
        .iter()
        .map(|of| totals(of.parallelism.name(), dimension_line(of), of.per_gpu(), of.cluster))
        .collect();
    rows.push(Row { class: "total", ..totals("all", String::new(), busiest, traffic.cluster()) });
    let headings =
        ["Dimension", ">calls", ">messages", ">wire", ">calls", ">messages", ">wire", ">by network"];
    html! {
        <table class="figures memory">
            <thead>
                <tr><td></td><th scope="colgroup" colspan="3" class="number">{ "one GPU of the busiest stage" }</th>
                    <th scope="colgroup" colspan="4" class="number">{ "the whole cluster" }</th></tr>
                <tr>{ for headings.into_iter().map(head) }</tr>
            </thead>
            <tbody>{ for rows.into_iter().map(|one| row(one, 8)) }</tbody>
        </table>
    }
}

fn totals(name: &str, line: String, gpu: Totals, cluster: Totals) -> Row {
    Row::of(vec![
        Cell::Two(name.to_owned(), line),
        Cell::Number(grouped(gpu.calls)),
        Cell::Number(size(gpu.bytes)),
        Cell::Number(size(gpu.wire)),
        Cell::Number(grouped(cluster.calls)),
        Cell::Number(size(cluster.bytes)),
        Cell::Number(size(cluster.wire)),
        Cell::Number(size(cluster.network)),
    ])
}

fn dimension(desk: &Desk, index: usize, of: &DimensionTraffic) -> Html {
    let name = of.parallelism.name();
    let mut listed = written_groups(&desk.shown.plan, of.group, LISTED);
    if let Some(more @ 1..) = of.groups.checked_sub(LISTED as u64) {
        listed.push_str(&format!("… and {more} more"));
    }
    let text = {
        let (shown, kind) = (desk.shown.clone(), of.group);
        Callback::from(move |()| written_groups(&shown.plan, kind, COPIED))
    };
    let rows = of
        .operations
        .iter()
        .enumerate()
        .map(|(place, operation)| message(desk, of, (index, place), operation));
    let headings = [
        "What",
        "Function and place",
        "Shape",
        ">each",
        ">on the wire",
        ">per micro-batch",
        ">per iteration",
        "hidden",
    ];
    html! {
        <details class="dimension">
            <summary><strong>{ name }</strong><span class="soft">{ dimension_line(of) }</span><span class="end">{ format!("{} per GPU", size(of.per_gpu().bytes)) }</span></summary>
            { table(&format!("Messages of the {name} dimension"), "", &headings, rows.collect()) }
            <div class="group-list">
                <p class="soft small">{ format!("Groups: {}", dimension_line(of)) }</p>
                <Copy {text} label="Copy the groups" />
                <pre class="mono members">{ listed }</pre>
            </div>
        </details>
    }
}

fn message(
    desk: &Desk,
    of: &DimensionTraffic,
    (dimension, place): (usize, usize),
    operation: &Operation,
) -> Row {
    let shape: Vec<String> = operation.shape.iter().map(ToString::to_string).collect();
    let of_message = move |shown: &Shown| {
        let operation = shown.report.traffic.dimensions.get(dimension)?.operations.get(place)?;
        Some(explain_message(&shown.plan, operation))
    };
    let of_wire = move |shown: &Shown| {
        let operation = shown.report.traffic.dimensions.get(dimension)?.operations.get(place)?;
        Some(explain_wire(operation))
    };
    let mut function = operation.collective.name().to_owned();
    if operation.group != of.group || operation.link != of.link {
        function.push_str(&format!(", {} GPUs, {}", operation.ranks, link_name(operation.link)));
    }
    Row::of(vec![
        Cell::Two(operation.name.to_owned(), operation.tensor.to_owned()),
        Cell::Two(function, operation.place.words().to_owned()),
        Cell::Two(format!("[{}]", shape.join(", ")), operation.dtype.to_owned()),
        Cell::DrawnNumber(number(desk, size(operation.bytes()), Box::new(of_message))),
        Cell::DrawnNumber(number(desk, size(operation.wire(Algorithm::Ring)), Box::new(of_wire))),
        Cell::Number(grouped(operation.most_calls_per_micro_batch())),
        Cell::Number(grouped(operation.most_calls())),
        Cell::Text(if operation.overlapped { "yes" } else { "no" }.to_owned()),
    ])
}
