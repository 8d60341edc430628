//! The communication blocks: the cluster's summary, then each dimension.

use super::sheet::Sheet;
use shardscope_estimate::collective::Algorithm;
use shardscope_estimate::traffic::{DimensionTraffic, Operation, Totals, Traffic};
use shardscope_units::{Bytes, gib, grouped, mib};

/// A size in a suitable unit.
fn size(bytes: Bytes) -> String {
    // One threshold for the whole block, so that columns stay comparable by eye.
    if bytes >= Bytes::gib(1) { gib(bytes) } else { mib(bytes) }
}

pub(super) fn write(sheet: &mut Sheet, traffic: &Traffic) {
    sheet.heading("Cluster communication of one iteration");
    sheet.line("A collective is counted once per participating rank, a send at its sender.");
    let row = |name: &str, totals: Totals| {
        vec![
            name.to_owned(),
            grouped(totals.calls),
            size(totals.bytes),
            size(totals.wire),
            size(totals.network),
        ]
    };
    let mut rows: Vec<Vec<String>> = Vec::new();
    for of in &traffic.dimensions {
        rows.push(row(of.parallelism.name(), of.cluster));
    }
    rows.push(row("all", traffic.cluster()));
    sheet.table(&["dimension", "calls", "messages", "sent, ring", "sent over the network"], &rows);
    for of in &traffic.dimensions {
        dimension(sheet, of);
    }
}

fn dimension(sheet: &mut Sheet, of: &DimensionTraffic) {
    let mut name = of.parallelism.name().to_owned();
    // Names are ASCII; `get_mut` because an empty one has no first letter.
    if let Some(first) = name.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    sheet.heading(&format!("{name} communication"));
    sheet.line(&format!("{} groups of {} over {}", of.groups, of.group_size, of.link.name()));
    let mut rows = Vec::with_capacity(of.operations.len());
    for one in &of.operations {
        rows.push(operation(one));
    }
    let header = [
        "what",
        "function",
        "where",
        "shape",
        "each",
        "sent, ring",
        "per micro-batch",
        "per iteration",
        "hidden",
    ];
    sheet.table(&header, &rows);
    let gpu = of.per_gpu();
    sheet.line(&format!(
        "each GPU of stage {}: {} calls, {} per iteration ({} sent by a ring)",
        of.busiest(),
        grouped(gpu.calls),
        size(gpu.bytes),
        size(gpu.wire)
    ));
}

fn operation(of: &Operation) -> Vec<String> {
    let shape: Vec<String> = of.shape.iter().map(ToString::to_string).collect();
    vec![
        format!("{}: {}", of.name, of.tensor),
        of.collective.name().to_owned(),
        of.place.words().to_owned(),
        format!("[{}] {}", shape.join(","), of.dtype),
        size(of.bytes()),
        size(of.wire(Algorithm::Ring)),
        grouped(of.most_calls_per_micro_batch()),
        grouped(of.most_calls()),
        if of.overlapped { "yes" } else { "no" }.to_owned(),
    ]
}
