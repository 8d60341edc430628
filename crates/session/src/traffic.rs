//! The texts of the communication panel.

use super::{Branch, Reason};
use shardscope_estimate::collective::{self, Algorithm};
use shardscope_estimate::traffic::{Detour, DimensionTraffic, Operation, TrafficWarning};
use shardscope_operators::Symbols;
use shardscope_plan::Plan;
use shardscope_report::Report;
use shardscope_topology::{GroupKind, Groups, Link, notation};
use shardscope_units::{grouped, percent, seconds, size};

/// The warning as a sentence, with its cost per step.
#[must_use]
pub fn detour_sentence(warning: &TrafficWarning, report: &Report) -> String {
    let what = match warning.detour {
        Detour::TensorLeavesDomain => {
            format!("Tensor-parallel groups of {} leave their NVLink domain", grouped(warning.ranks))
        }
        Detour::ExpertsCrossNetwork => {
            format!(
                "Tokens on their way to experts cross the network, in groups of {}",
                grouped(warning.ranks)
            )
        }
        Detour::PipelineInsideDataOutside => {
            "Pipeline neighbours share a node while data parallelism, which sends more, crosses the network"
                .to_owned()
        }
    };
    let kind = match warning.detour {
        Detour::TensorLeavesDomain => "tensor",
        Detour::ExpertsCrossNetwork => "expert",
        Detour::PipelineInsideDataOutside => "data",
    };
    // For the waits of that dimension as a whole: a warning is about its groups, not about one collective.
    let (waits, share) = report.time.waits(kind);
    format!(
        "{what}: {} per GPU per step, of which {} is exposed: {} of the step ({}).",
        size(warning.wire),
        size(warning.exposed),
        seconds(waits),
        percent(share)
    )
}

/// The kind of link, as people call it.
#[must_use]
pub const fn link_name(link: Link) -> &'static str {
    match link {
        Link::Alone => "alone",
        Link::Fast => "NVLink",
        Link::Node => "inside the node, outside NVLink",
        Link::Network => "network",
    }
}

/// The name of a dimension's row: `tensor`, its groups and their link.
#[must_use]
pub fn dimension_line(of: &DimensionTraffic) -> String {
    let groups = if of.groups == 1 { "1 group".to_owned() } else { format!("{} groups", grouped(of.groups)) };
    format!("{groups} of {}, {}", grouped(of.group_size), link_name(of.link))
}

/// Formula behind the size of a message.
#[must_use]
pub fn explain_message(plan: &Plan, of: &Operation) -> Branch {
    let why = of.explain(&Symbols::new(plan));
    Branch {
        label: format!("{}: {}", of.name, of.tensor),
        value: size(of.bytes()),
        share: 1.0,
        times: 1,
        greatest: false,
        reason: Some(Reason::from_explanation(&why)),
        parts: Vec::new(),
    }
}

/// What one call puts on the wire, per GPU: a ring's bytes, and those of every algorithm as its parts.
#[must_use]
pub fn explain_wire(of: &Operation) -> Branch {
    let line = |label: String, algorithm: Algorithm| Branch {
        label,
        value: size(of.wire(algorithm)),
        share: 1.0,
        times: 1,
        greatest: false,
        reason: Some(Reason::from_explanation(&collective::explain_wire(
            algorithm,
            of.collective,
            of.ranks,
            of.bytes(),
        ))),
        parts: Vec::new(),
    };
    let parts = Algorithm::ALL.map(|algorithm| line(format!("by {}", algorithm.name()), algorithm)).to_vec();
    // The ring represents the call: it is what NCCL uses for large messages, and what the tables count.
    Branch { parts, ..line(format!("{}: {}, on the wire", of.name, of.tensor), Algorithm::Ring) }
}

/// Every group of a kind, one a line (`[n0_g0 n0_g1]`), at most `most` of them.
#[must_use]
pub fn written_groups(plan: &Plan, kind: GroupKind, most: usize) -> String {
    let per_node = plan.cluster().gpus_per_node;
    let groups = Groups::new(plan.layout());
    let mut text = String::new();
    for group in groups.all(kind).take(most) {
        text.push_str(&notation(group.ranks(), per_node));
        text.push('\n');
    }
    text
}
