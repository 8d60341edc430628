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
    // Units that each pass gathers anew stay gathered between passes of PyTorch's pipelines, which is not modelled.
    let holds = plan.recipe().software.semantics().pipelines_hold_reductions;
    let anew = base.sharding == DpSharding::Parameters && base.pipeline == 1 && of.pipeline > 1;
    let own = (!(holds && anew)).then_some(base.sharding);
    if !choices.get(Dimension::Sharding).vary() || !plan.recipe().tuning.is_full() {
        return own.into_iter().collect();
    }
    let offers = &plan.recipe().software.semantics().offers;
    let mut out = if of.pipeline > 1 { offers.shardings_of_pipelines } else { offers.shardings }.to_vec();
    // The plan's own sharding is tried whatever the software is known to offer: it does run.
    if let Some(own) = own.filter(|own| !out.contains(own)) {
        out.push(own);
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

#[cfg(test)]
mod tests {
    use super::rests;
    use crate::dimension::Choices;
    use shardscope_launch::resolve;
    use shardscope_plan::{DpSharding, Variant};

    /// How pipelines of PyTorch hold units that are resharded after forward is not modelled, so no search proposes it.
    #[test]
    fn torchtitans_pipelines_are_not_tried_with_units_gathered_anew() {
        let settings = [
            ("software", "torchtitan"),
            ("num_layers", "4"),
            ("hidden_size", "1024"),
            ("num_attention_heads", "16"),
            ("seq_length", "512"),
            ("vocab_size", "32000"),
            ("micro_batch_size", "1"),
            ("global_batch_size", "64"),
            ("bf16", "true"),
            ("zero_stage", "3"),
            ("num_nodes", "1"),
            ("gpus_per_node", "8"),
            ("accelerator", "H100-SXM"),
        ];
        let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let plan = resolve(&[], &settings).plan.expect("a plan");
        let base = Variant::from_plan(&plan);
        let tried = |pipeline: u64, choices: &Choices| {
            let of = Variant { pipeline, ..base.clone() };
            rests(&plan, &base, choices, &of).iter().any(|(own, _)| *own == DpSharding::Parameters)
        };
        let choices = Choices::default();
        assert!(tried(1, &choices));
        assert!(!tried(2, &choices));
    }
}
