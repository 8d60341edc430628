//! What varies once stages and recomputation are settled: what data-parallel replicas share, and what of their traffic
//! hides behind compute.

use crate::dimension::{Choices, Dimension};
use shardscope_plan::{DpSharding, NumberFormat, Overlap, Plan, Variant};

/// Sharding and overlap of one leaf.
pub(super) type Rest = (DpSharding, Overlap);

/// Every rest for `kernel`'s overlap and `p` stages.
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
    // The plan's own is tried whatever the software is known to offer: it runs.
    if !out.contains(&base.sharding) {
        out.push(base.sharding);
    }
    // States go to the host where they are shared alone (`host_optimizer`), and groups of replicas are groups that share.
    let shared = offers.shares_states_in_bf16 && plan.recipe().params_dtype == NumberFormat::Bf16;
    if of.optimizer_on_host || of.instances > 1 || shared {
        out.retain(|sharding| *sharding != DpSharding::Replicated || *sharding == base.sharding);
    }
    out
}

/// The overlap of reductions: as stated, or the most that the software does where the reader leaves it open. More of it never
/// takes longer (`crates/search/tests/optimal.rs` holds that against the pairs) and changes no byte of memory.
fn overlaps(plan: &Plan, choices: &Choices, stated: Overlap, sharding: DpSharding) -> Overlap {
    let sharded = sharding != DpSharding::Replicated;
    let overlaps = plan.recipe().software.semantics().offers.overlaps_reductions;
    if overlaps && choices.get(Dimension::Overlap).vary() {
        return Overlap { grad_reduce: true, param_gather: sharded, ..stated };
    }
    // Weights are gathered behind compute only with gradients reduced so (`arguments.py:validate_args`).
    Overlap { param_gather: stated.param_gather && sharded && stated.grad_reduce, ..stated }
}
