//! The memory of each stage as displayed.

use super::map::holds;
use super::{Branch, Fit, StageMemory, Use};
use shardscope_estimate::{Memory, Needs, RankMemory};
use shardscope_plan::Plan;
use shardscope_units::{Bytes, size};

/// The memory of every stage of `plan`.
#[must_use]
pub fn stage_memories(plan: &Plan, memory: &Memory) -> Vec<StageMemory> {
    memory.ranks.iter().map(|rank| stage_memory(plan, memory, rank)).collect()
}

fn stage_memory(plan: &Plan, memory: &Memory, rank: &RankMemory) -> StageMemory {
    let totals = rank.totals;
    // The peak can be inside an operator (for example the loss), which the user needs to know.
    let at = match rank.within {
        Some(within) => format!("{}, {within}", rank.at),
        None => rank.at.to_owned(),
    };
    // For this device: what PyTorch would cache on a larger one is released before it runs out here.
    let needs = Needs::new(totals.peak_reserved, totals.peak_required, memory.capacity);
    StageMemory {
        stage: rank.pipeline_rank,
        holds: holds(plan, rank.pipeline_rank).join("; "),
        uses: [
            totals.parameters,
            totals.gradients,
            totals.optimizer,
            totals.activations,
            totals.temporaries,
            // This includes cached blocks.
            totals.framework.less(needs.released),
        ],
        allocated: totals.peak_allocated,
        reserved: needs.bytes,
        between_steps: totals.between_steps,
        in_flight: rank.chunks.iter().map(|chunk| chunk.in_flight).collect(),
        at,
        fit: Fit::from_verdict(totals.verdict(memory.capacity, memory.headroom)),
        needs,
    }
}

/// The breakdown of a stage's memory of one kind, or of all of it.
#[must_use]
pub fn explain_memory(memory: &Memory, stage: u64, kind: Option<Use>) -> Option<Branch> {
    let rank = memory.ranks.iter().find(|rank| rank.pipeline_rank == stage)?;
    let node = match kind {
        None => Some(&rank.breakdown),
        Some(Use::Framework) => rank.breakdown.child(Use::Framework.name()),
        Some(kind) => {
            // Everything but framework memory is a part of what PyTorch allocates, one level below.
            rank.breakdown.child("peak_allocated").and_then(|allocated| allocated.child(kind.name()))
        }
    };
    let mut branch = Branch::from_breakdown(node?, size);
    let needs = Needs::new(rank.totals.peak_reserved, rank.totals.peak_required, memory.capacity);
    if needs.released > Bytes::ZERO && kind.is_none_or(|kind| kind == Use::Framework) {
        // The tree itself includes what the allocator would like to cache; the figure must be the verdict's, after
        // releasing that, or bar and tree would disagree.
        branch.value = size(node?.value().less(needs.released));
        branch.parts.push(Branch {
            label: "cached blocks that PyTorch releases before it fails".to_owned(),
            value: format!("−{}", size(needs.released)),
            share: 0.0,
            times: 1,
            greatest: false,
            reason: None,
            parts: Vec::new(),
        });
    }
    Some(branch)
}
