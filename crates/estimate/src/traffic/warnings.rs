//! Traffic that takes a slower path than necessary, as data for the advice.

use super::ledger::{DimensionTraffic, Operation, Parallelism, Traffic};
use crate::collective::Algorithm;
use shardscope_plan::Plan;
use shardscope_topology::Link;
use shardscope_units::Bytes;

/// What is wrong with the placement of groups on the machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detour {
    /// A tensor-parallel group leaves its fast-link domain.
    TensorLeavesDomain,
    /// Tokens on their way to experts cross the network.
    ExpertsCrossNetwork,
    /// Pipeline neighbours share a node, while the data-parallel groups, which send more, do not.
    PipelineInsideDataOutside,
}

/// One warning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrafficWarning {
    /// Kind of detour.
    pub detour: Detour,
    /// The link that is used.
    pub link: Link,
    /// Ranks of a group.
    pub ranks: u64,
    /// Bytes that a rank of the busiest stage sends over it in one iteration, ring algorithm.
    pub wire: Bytes,
    /// The part of those bytes that no compute hides.
    pub exposed: Bytes,
}

/// The warnings about `traffic` under `plan`.
#[must_use]
pub fn warnings(plan: &Plan, traffic: &Traffic) -> Vec<TrafficWarning> {
    let mut out = Vec::new();
    if let Some(tensor) = traffic.dimension(Parallelism::Tensor).filter(|tensor| tensor.link > Link::Fast) {
        out.push(warn(Detour::TensorLeavesDomain, tensor, |_| true));
    }
    if let Some(expert) = traffic.dimension(Parallelism::Expert) {
        let crosses = |operation: &Operation| operation.link == Link::Network;
        if expert.operations.iter().any(crosses) {
            let warning = warn(Detour::ExpertsCrossNetwork, expert, crosses);
            out.push(TrafficWarning { link: Link::Network, ..warning });
        }
    }
    if plan.cluster().num_nodes > 1
        && let (Some(pipeline), Some(data)) =
            (traffic.dimension(Parallelism::Pipeline), traffic.dimension(Parallelism::Data))
        && pipeline.link < Link::Network
        && data.link == Link::Network
        && data.per_gpu().wire > pipeline.per_gpu().wire
    {
        out.push(warn(Detour::PipelineInsideDataOutside, data, |_| true));
    }
    out
}

fn warn(detour: Detour, dimension: &DimensionTraffic, counts: impl Fn(&Operation) -> bool) -> TrafficWarning {
    let stage = dimension.busiest();
    let sent = |hidden: bool| -> Bytes {
        let own = dimension.operations.iter().filter(|operation| counts(operation));
        let own = own.filter(|operation| hidden || !operation.overlapped);
        own.map(|operation| operation.wire(Algorithm::Ring) * operation.calls(stage)).sum()
    };
    TrafficWarning {
        detour,
        link: dimension.link,
        ranks: dimension.group_size,
        wire: sent(true),
        exposed: sent(false),
    }
}
