//! `report.communication`.

use serde_json::{Map, Value, json};

use super::super::tree::explanation;
use crate::anatomy::Symbols;
use crate::estimate::collective::Algorithm;
use crate::estimate::traffic::{DimensionTraffic, Operation, Parallelism, Totals, Traffic};

pub(super) fn communication(
    x: &Symbols<'_>,
    traffic: &Traffic,
    explanations: &mut Map<String, Value>,
) -> Value {
    let mut dimensions = Map::new();
    for parallelism in Parallelism::ALL {
        let value = traffic.of(parallelism).map_or(Value::Null, |of| dimension(x, of, explanations));
        dimensions.insert(parallelism.name().into(), value);
    }
    // Sequence parallelism sends in the tensor groups; its messages stand under `tensor`.
    dimensions.insert("sequence".into(), Value::Null);
    let cluster = traffic.cluster();
    json!({
        "dimensions": dimensions,
        "total": totals(cluster),
    })
}

fn totals(totals: Totals) -> Value {
    json!({
        "calls_per_iteration": totals.calls,
        "bytes_per_iteration": totals.bytes.get(),
        "wire_bytes_per_iteration": totals.wire.get(),
        "network_wire_bytes_per_iteration": totals.network.get(),
    })
}

fn dimension(x: &Symbols<'_>, of: &DimensionTraffic, explanations: &mut Map<String, Value>) -> Value {
    let path = format!("communication/dimensions/{}/operations", of.parallelism.name());
    let operations: Vec<Value> = of
        .operations
        .iter()
        .enumerate()
        .map(|(index, of)| {
            explanations.insert(format!("{path}/{index}/bytes_per_call"), explanation(&of.explain(x)));
            operation(of)
        })
        .collect();
    json!({
        "groups": of.groups,
        "group_size": of.group_size,
        "group_kind": of.group.name(),
        "link": of.link.name(),
        "operations": operations,
        "per_gpu": totals(of.per_gpu()),
        "busiest_pipeline_rank": of.busiest(),
        "stages": of.stages.iter().map(|stage| totals(*stage)).collect::<Vec<_>>(),
        "cluster": totals(of.cluster),
    })
}

/// What one call puts on the wire, per GPU, by algorithm.
fn wire(of: &Operation) -> Value {
    Algorithm::ALL.into_iter().map(|by| (by.name().to_owned(), Value::from(of.wire(by).get()))).collect()
}

fn operation(of: &Operation) -> Value {
    json!({
        "name": format!("{}: {}", of.name, of.tensor),
        "collective": of.collective.name(),
        "where": of.place.words(),
        "shape": of.shape.iter().copied().collect::<Vec<u64>>(),
        "dtype": of.dtype,
        "bytes_per_call": of.bytes().get(),
        "calls_per_micro_batch_per_gpu": of.most_calls_per_micro_batch(),
        "calls_per_iteration_per_gpu": of.most_calls(),
        "calls_per_iteration_by_stage": of.per_iteration,
        "group_kind": of.group.name(),
        "group_size": of.ranks,
        "link": of.link.name(),
        "overlapped": of.overlapped,
        "wire_bytes_per_call": wire(of),
    })
}
