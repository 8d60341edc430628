//! `report.communication`.

use serde::Serialize;

use super::tree::{Explanations, Object};
use shardscope_estimate::collective::Algorithm;
use shardscope_estimate::traffic::{self, DimensionTraffic, Parallelism, Traffic};
use shardscope_operators::Symbols;
use shardscope_units::Bytes;

/// Every message of an iteration.
#[derive(Debug, Serialize)]
pub struct Communication<'r> {
    /// By dimension of parallelism; null if it sends nothing. Sequence parallelism sends in the tensor groups, so its
    /// messages are under `tensor`.
    pub dimensions: Object<&'static str, Option<Dimension<'r>>>,
    /// Of all GPUs together.
    pub total: Totals,
}

/// The messages of one dimension of parallelism.
#[derive(Debug, Serialize)]
pub struct Dimension<'r> {
    /// Process groups of this dimension.
    pub groups: u64,
    /// Ranks of a group.
    pub group_size: u64,
    /// The kind of group, a name of `topology.groups`.
    pub group_kind: &'static str,
    /// The slowest link that a group spans.
    pub link: &'static str,
    /// The collectives.
    pub operations: Vec<Operation<'r>>,
    /// Totals of the GPU that sends most.
    pub per_gpu: Totals,
    /// The pipeline rank of that GPU.
    pub busiest_pipeline_rank: usize,
    /// Of one GPU of each pipeline rank.
    pub stages: Vec<Totals>,
    /// Of all GPUs together.
    pub cluster: Totals,
}

/// A sum of messages over one iteration.
#[derive(Debug, Serialize)]
pub struct Totals {
    /// Calls of a collective.
    pub calls_per_iteration: u64,
    /// Sizes of the messages.
    pub bytes_per_iteration: Bytes,
    /// What the algorithms put on the wire, for example 2(n-1)/n of the message for a ring all-reduce.
    pub wire_bytes_per_iteration: Bytes,
    /// The part of these that leaves a node.
    pub network_wire_bytes_per_iteration: Bytes,
}

/// One collective, as often as it is called.
#[derive(Debug, Serialize)]
pub struct Operation<'r> {
    /// What is sent, and which tensor.
    pub name: String,
    /// `all_reduce`, `all_gather`, `reduce_scatter`, `all_to_all`, `send_recv` or `broadcast`.
    pub collective: &'static str,
    /// When in the iteration.
    #[serde(rename = "where")]
    pub place: &'static str,
    /// Shape of the message.
    pub shape: &'r [u64],
    /// Type of its elements.
    pub dtype: &'static str,
    /// Size of the message.
    pub bytes_per_call: Bytes,
    /// Calls for one micro-batch by the GPU that calls most.
    pub calls_per_micro_batch_per_gpu: u64,
    /// Calls in an iteration by the GPU that calls most.
    pub calls_per_iteration_per_gpu: u64,
    /// Calls in an iteration by a GPU of each pipeline rank.
    pub calls_per_iteration_by_stage: &'r [u64],
    /// The kind of group, a name of `topology.groups`.
    pub group_kind: &'static str,
    /// Ranks of the group.
    pub group_size: u64,
    /// The slowest link that the group spans.
    pub link: &'static str,
    /// Whether it overlaps with computation.
    pub overlapped: bool,
    /// What one call puts on the wire, per GPU, by algorithm.
    pub wire_bytes_per_call: Object<&'static str, Bytes>,
}

impl<'r> Communication<'r> {
    pub(super) fn new(x: &Symbols<'_>, traffic: &'r Traffic, explanations: &mut Explanations) -> Self {
        let mut dimensions: Vec<(&'static str, Option<Dimension<'r>>)> = Vec::new();
        for parallelism in Parallelism::ALL {
            let dimension = traffic.dimension(parallelism).map(|of| Dimension::new(x, of, explanations));
            dimensions.push((parallelism.name(), dimension));
        }
        // Its messages are sent in the tensor groups; the key stays, as keys of the contract never disappear.
        dimensions.push(("sequence", None));
        Self { dimensions: Object(dimensions), total: Totals::new(traffic.cluster()) }
    }
}

impl<'r> Dimension<'r> {
    fn new(x: &Symbols<'_>, of: &'r DimensionTraffic, explanations: &mut Explanations) -> Self {
        for (index, operation) in of.operations.iter().enumerate() {
            let name = of.parallelism.name();
            // The path in the document, so that the formula of a figure can be found.
            let path = format!("communication/dimensions/{name}/operations/{index}/bytes_per_call");
            explanations.add(path, &operation.explain(x));
        }
        Self {
            groups: of.groups,
            group_size: of.group_size,
            group_kind: of.group.name(),
            link: of.link.name(),
            operations: of.operations.iter().map(Operation::new).collect(),
            per_gpu: Totals::new(of.per_gpu()),
            busiest_pipeline_rank: of.busiest(),
            stages: of.stages.iter().copied().map(Totals::new).collect(),
            cluster: Totals::new(of.cluster),
        }
    }
}

impl Totals {
    fn new(totals: traffic::Totals) -> Self {
        Self {
            calls_per_iteration: totals.calls,
            bytes_per_iteration: totals.bytes,
            wire_bytes_per_iteration: totals.wire,
            network_wire_bytes_per_iteration: totals.network,
        }
    }
}

impl<'r> Operation<'r> {
    fn new(of: &'r traffic::Operation) -> Self {
        Self {
            name: format!("{}: {}", of.name, of.tensor),
            collective: of.collective.name(),
            place: of.place.words(),
            shape: &of.shape,
            dtype: of.dtype,
            bytes_per_call: of.bytes(),
            calls_per_micro_batch_per_gpu: of.most_calls_per_micro_batch(),
            calls_per_iteration_per_gpu: of.most_calls(),
            calls_per_iteration_by_stage: &of.per_iteration,
            group_kind: of.group.name(),
            group_size: of.ranks,
            link: of.link.name(),
            overlapped: of.overlapped,
            wire_bytes_per_call: Object(Algorithm::ALL.iter().map(|by| (by.name(), of.wire(*by))).collect()),
        }
    }
}
