//! The map as a table, and as text to download.

use super::{relation_name, relations};
use crate::written_groups;
use shardscope_plan::Plan;
use shardscope_topology::{GroupKind, Groups, Rank};

/// Maximum number of groups of a kind that are listed.
const MOST_GROUPS: usize = 20_000;

/// One GPU as a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpuLine {
    /// Which.
    pub rank: Rank,
    /// `n0_g3`.
    pub label: String,
    /// Pipeline stage.
    pub stage: u64,
    /// The number of its group of each kind of [`relations`]; `None` if it is in none.
    pub groups: Vec<Option<u64>>,
}

/// `count` GPUs from `first` on.
#[must_use]
pub fn gpu_lines(plan: &Plan, first: u64, count: u64) -> Vec<GpuLine> {
    let groups = Groups::new(plan.layout());
    let kinds = relations(plan);
    // Saturating: `first` comes from how far a table was scrolled, and `count` from its height.
    let last = first.saturating_add(count).min(groups.world());
    let line = |index| {
        let rank = Rank::new(index);
        GpuLine {
            rank,
            label: rank.label(plan.cluster().gpus_per_node),
            stage: groups.coordinates(rank).pipeline,
            groups: kinds.iter().map(|kind| groups.group(*kind, rank).map(|group| group.index())).collect(),
        }
    };
    (first..last).map(line).collect()
}

/// Every group of every kind that communicates, in the notation `[n0_g0 n0_g1]`.
#[must_use]
pub fn all_groups(plan: &Plan) -> String {
    let groups = Groups::new(plan.layout());
    let block = |kind: GroupKind| {
        let count = groups.count(kind);
        format!("{count} {} groups\n{}", relation_name(kind), written_groups(plan, kind, MOST_GROUPS))
    };
    relations(plan).into_iter().map(block).collect::<Vec<_>>().join("\n")
}
