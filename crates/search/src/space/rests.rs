//! What varies once stages and recomputation are settled: what data-parallel replicas shard, and which of their
//! traffic hides behind compute.

use crate::dimension::{Choices, Dimension};
use shardscope_plan::{DpSharding, NumberFormat, Overlap, Plan, Variant};

/// Sharding and overlap of one leaf.
pub(super) type Rest = (DpSharding, Overlap);

/// Every rest of `of`: the shardings that it allows, each with its overlap.
pub(super) fn rests(plan: &Plan, base: &Variant, choices: &Choices, of: &Variant) -> Vec<Rest> {
    let mut out = Vec::new();
    for sharding in shardings(plan, base, choices, of) {
        out.push((sharding, overlaps(plan, choices, of.overlap, sharding)));
    }
    out
}

fn shardings(plan: &Plan, base: &Variant, choices: &Choices, of: &Variant) -> Vec<DpSharding> {
    if !choices.get(Dimension::Sharding).vary() || !plan.recipe().tuning.is_full() {
        return vec![base.sharding];
    }
    let offers = &plan.recipe().software.semantics().offers;
    let mut out = if of.pipeline > 1 { offers.shardings_of_pipelines } else { offers.shardings }.to_vec();
    // The plan's own sharding is tried whatever the software is known to offer: it does run.
    if !out.contains(&base.sharding) {
        out.push(base.sharding);
    }
    // Only sharded states go to the host (`host_optimizer`), and groups of replicas only exist with sharding.
    let shared = offers.shares_states_in_bf16 && plan.recipe().params_dtype == NumberFormat::Bf16;
    if of.optimizer_on_host || of.instances > 1 || shared {
        out.retain(|sharding| *sharding != DpSharding::Replicated || *sharding == base.sharding);
    }
    out
}

/// The overlap of reductions: as stated, or the most that the software offers if the reader leaves it open. More
/// overlap never takes longer (`crates/search/tests/optimal.rs` checks that against the pairs) and changes no byte of
/// memory.
fn overlaps(plan: &Plan, choices: &Choices, stated: Overlap, sharding: DpSharding) -> Overlap {
    let sharded = sharding != DpSharding::Replicated;
    let overlaps = plan.recipe().software.semantics().offers.overlaps_reductions;
    if overlaps && choices.get(Dimension::Overlap).vary() {
        return Overlap { grad_reduce: true, param_gather: sharded, ..stated };
    }
    // Weights are gathered behind compute only if gradients are reduced that way (`arguments.py:validate_args`).
    Overlap { param_gather: stated.param_gather && sharded && stated.grad_reduce, ..stated }
}
