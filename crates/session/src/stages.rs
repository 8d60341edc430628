//! The memory of each stage as it is shown.

use super::map::holds;
use super::{Branch, Fit, StageMemory, Use};
use shardscope_estimate::{Memory, Needs, RankMemory};
use shardscope_plan::Plan;
use shardscope_units::size;

/// The memory of every stage of `plan`.
#[must_use]
pub fn stage_memories(plan: &Plan, memory: &Memory) -> Vec<StageMemory> {
    memory.ranks.iter().map(|rank| stage_memory(plan, memory, rank)).collect()
}

fn stage_memory(plan: &Plan, memory: &Memory, rank: &RankMemory) -> StageMemory {
    let totals = rank.totals;
    let at = match rank.within {
        Some(within) => format!("{}, {within}", rank.at),
        None => rank.at.to_owned(),
    };
    StageMemory {
        stage: rank.pipeline_rank,
        holds: holds(plan, rank.pipeline_rank).join("; "),
        uses: [
            totals.parameters,
            totals.gradients,
            totals.optimizer,
            totals.activations,
            totals.temporaries,
            totals.framework,
        ],
        allocated: totals.peak_allocated,
        reserved: totals.peak_reserved,
        between_steps: totals.between_steps,
        in_flight: rank.chunks.iter().map(|chunk| chunk.in_flight).collect(),
        at,
        fit: Fit::of(totals.verdict(memory.capacity, memory.headroom)),
        needs: Needs::of(totals.peak_reserved, totals.peak_required, memory.capacity),
    }
}

/// What a stage's memory of one kind, or all of it, is made of.
#[must_use]
pub fn explain_memory(memory: &Memory, stage: u64, kind: Option<Use>) -> Option<Branch> {
    let rank = memory.ranks.iter().find(|rank| rank.pipeline_rank == stage)?;
    let node = match kind {
        None => Some(&rank.breakdown),
        Some(Use::Framework) => rank.breakdown.child(Use::Framework.name()),
        Some(kind) => {
            rank.breakdown.child("peak_allocated").and_then(|allocated| allocated.child(kind.name()))
        }
    };
    node.map(|node| Branch::of(node, size))
}
