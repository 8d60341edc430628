//! Who sends what to whom, how much and how often.

use shardscope::estimate::collective::Algorithm;
use shardscope::estimate::traffic::{DimensionTraffic, Operation, Totals};
use shardscope::quantity::{grouped, size};
use shardscope::session::{Shown, detour_sentence, dimension_line, link_name, written_groups};

use crate::app::act::{Copied, Why};
use crate::app::desk::Desk;
use crate::app::parts::{Sign, Tag, copy, details, group, heads, named, number, section, table, tag, wide};
use crate::app::words::{communication as words, digits, fill, numbered};

/// Groups listed before the rest is only counted.
const LISTED: usize = 16;

pub(crate) fn communication(desk: &Desk, shown: &Shown) -> Tag {
    let report = &shown.report;
    let panel = section(desk, "section.panel#communication", "communication-title", &words::PANEL);
    if report.traffic.dimensions.is_empty() {
        return panel.with("p", words::ALONE);
    }
    let mut dimensions = group();
    for (index, of) in report.traffic.dimensions.iter().enumerate() {
        dimensions = dimensions.child(dimension(desk, shown, (index, of)));
    }
    let warnings = tag("ul.warnings").each(&report.detours, |warning| {
        tag("li").child(Sign::Tight.icon()).say(detour_sentence(warning, report))
    });
    panel
        .child(warnings)
        .child(wide(words::TABLE, summary(desk, shown)))
        .with("h3.sub", words::DIMENSIONS)
        .child(dimensions)
}

fn summary(desk: &Desk, shown: &Shown) -> Tag {
    let traffic = &shown.report.traffic;
    let busiest = traffic.stages().into_iter().max_by_key(|stage| stage.bytes).unwrap_or_default();
    let over = |columns: u64, words: &'static str| {
        tag("th.number").set("scope", "colgroup").count("colspan", columns).text(words)
    };
    let above = tag("tr").child(tag("td")).child(over(3, words::ONE_GPU)).child(over(4, words::CLUSTER));
    let rows = tag("tbody").each(&traffic.dimensions, |of| {
        totals(
            tag("tr"),
            (group().child(named(desk, of.parallelism.name())), dimension_line(of)),
            of.per_gpu(),
            of.cluster,
        )
    });
    let last = totals(tag("tr.total"), (group().text(words::ALL), String::new()), busiest, traffic.cluster());
    tag("table.figures memory")
        .child(tag("thead").child(above).child(heads(&words::TOTALS)))
        .child(rows.child(last))
}

fn totals(row: Tag, (name, line): (Tag, String), gpu: Totals, cluster: Totals) -> Tag {
    row.cell(name.saying("span.before", line))
        .number(grouped(gpu.calls))
        .number(size(gpu.bytes))
        .number(size(gpu.wire))
        .number(grouped(cluster.calls))
        .number(size(cluster.bytes))
        .number(size(cluster.wire))
        .number(size(cluster.network))
}

fn dimension(desk: &Desk, shown: &Shown, (index, of): (usize, &DimensionTraffic)) -> Tag {
    let name = of.parallelism.name();
    let line = dimension_line(of);
    let mut listed = written_groups(&shown.plan, of.group, LISTED);
    if let Some(more @ 1..) = of.groups.checked_sub(LISTED as u64) {
        listed.push_str(&numbered(words::MORE, &[more]));
    }
    let mut rows = group();
    for (place, operation) in of.operations.iter().enumerate() {
        rows = rows.child(message(desk, of, operation, (index, place)));
    }
    let summary = tag("summary")
        .with("strong", name)
        .saying("span.soft", line.clone())
        .saying("span.end", fill(words::PER_GPU, [size(of.per_gpu().bytes)]));
    let groups = tag("div.group-list")
        .saying("p.soft small", fill(words::GROUPS, [line]))
        .child(copy(desk, Copied::Groups(of.group), words::COPY))
        .child(tag("pre.mono members").set("tabindex", "0").say(listed));
    details("details.dimension", false, summary)
        .child(table(&fill(words::MESSAGES_OF, [name.to_owned()]), "table.figures", &words::MESSAGES, rows))
        .child(groups)
}

fn message(
    desk: &Desk,
    of: &DimensionTraffic,
    operation: &Operation,
    (dimension, place): (usize, usize),
) -> Tag {
    let mut shape = String::from("[");
    for (place, length) in operation.shape.iter().enumerate() {
        shape.push_str(if place == 0 { "" } else { ", " });
        shape.push_str(&length.to_string());
    }
    shape.push(']');
    // Each function is explained where it first stands.
    let before = of.operations.get(..place).unwrap_or_default();
    let name = operation.collective.name();
    let first = before.iter().all(|before| before.collective != operation.collective);
    let function = if first { named(desk, name) } else { group().text(name) };
    let mut function = group().child(function);
    if operation.group != of.group || operation.link != of.link {
        let link = link_name(operation.link).to_owned();
        function = function.say(fill(words::OTHER_GROUP, [digits(operation.ranks), link]));
    }
    tag("tr")
        .two(operation.name, operation.tensor)
        .cell(function.with("span.before", operation.place.words()))
        .two(&shape, operation.dtype)
        .figure(number(desk, size(operation.bytes()), Why::Message(dimension, place)))
        .figure(number(desk, size(operation.wire(Algorithm::Ring)), Why::Wire(dimension, place)))
        .number(grouped(operation.most_calls_per_micro_batch()))
        .number(grouped(operation.most_calls()))
        .words(if operation.overlapped { words::YES } else { words::NO })
}
