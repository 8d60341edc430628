//! `report.communication`.

use super::super::tree::Explanations;
use crate::anatomy::Symbols;
use crate::estimate::collective::Algorithm;
use crate::estimate::traffic::{DimensionTraffic, Operation, Parallelism, Totals, Traffic};
use crate::json::Writer;

pub(super) fn communication(
    w: &mut Writer,
    x: &Symbols<'_>,
    traffic: &Traffic,
    explanations: &mut Explanations,
) {
    w.object("communication");
    w.object("dimensions");
    for &parallelism in &Parallelism::ALL {
        match traffic.of(parallelism) {
            Some(of) => dimension(w, x, of, explanations),
            None => w.null(parallelism.name()),
        }
    }
    // Sequence parallelism sends in the tensor groups; its messages stand under `tensor`.
    w.null("sequence");
    w.close();
    totals(w, "total", traffic.cluster());
    w.close();
}

fn totals(w: &mut Writer, name: &str, totals: Totals) {
    w.object(name);
    w.count("calls_per_iteration", totals.calls);
    w.count("bytes_per_iteration", totals.bytes.get());
    w.count("wire_bytes_per_iteration", totals.wire.get());
    w.count("network_wire_bytes_per_iteration", totals.network.get());
    w.close();
}

fn dimension(w: &mut Writer, x: &Symbols<'_>, of: &DimensionTraffic, explanations: &mut Explanations) {
    let name = of.parallelism.name();
    w.object(name);
    w.count("groups", of.groups);
    w.count("group_size", of.group_size);
    w.text("group_kind", of.group.name());
    w.text("link", of.link.name());
    w.list("operations");
    for (index, of) in of.operations.iter().enumerate() {
        let path = format!("communication/dimensions/{name}/operations/{index}/bytes_per_call");
        explanations.add(path, of.explain(x));
        operation(w, of);
    }
    w.close();
    totals(w, "per_gpu", of.per_gpu());
    w.count("busiest_pipeline_rank", of.busiest() as u64);
    w.list("stages");
    for stage in &of.stages {
        totals(w, "", *stage);
    }
    w.close();
    totals(w, "cluster", of.cluster);
    w.close();
}

fn operation(w: &mut Writer, of: &Operation) {
    w.object("");
    w.text("name", &format!("{}: {}", of.name, of.tensor));
    w.text("collective", of.collective.name());
    w.text("where", of.place.words());
    w.counts("shape", &of.shape);
    w.text("dtype", of.dtype);
    w.count("bytes_per_call", of.bytes().get());
    w.count("calls_per_micro_batch_per_gpu", of.most_calls_per_micro_batch());
    w.count("calls_per_iteration_per_gpu", of.most_calls());
    w.counts("calls_per_iteration_by_stage", &of.per_iteration);
    w.text("group_kind", of.group.name());
    w.count("group_size", of.ranks);
    w.text("link", of.link.name());
    w.truth("overlapped", of.overlapped);
    // What one call puts on the wire, per GPU, by algorithm.
    w.object("wire_bytes_per_call");
    for &by in &Algorithm::ALL {
        w.count(by.name(), of.wire(by).get());
    }
    w.close();
    w.close();
}
