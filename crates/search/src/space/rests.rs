//! What varies once stages and recomputation are settled: what data-parallel replicas share, and what of their traffic
//! hides behind compute.

use crate::dimension::{Choices, Dimension};
use shardscope_plan::{DpSharding, Overlap, Plan, Software, Variant};

/// Sharding and overlap of one leaf.
pub(super) type Rest = (DpSharding, Overlap);

/// Every rest for `kernel`'s overlap and `p` stages.
pub(super) fn rests(plan: &Plan, base: &Variant, choices: &Choices, of: &Variant) -> Vec<Rest> {
    let mut out = Vec::new();
    for sharding in shardings(plan, base, choices, of.pipeline) {
        out.push((sharding, overlaps(plan, choices, of.overlap, sharding)));
    }
    out
}

fn shardings(plan: &Plan, base: &Variant, choices: &Choices, p: u64) -> Vec<DpSharding> {
    if !choices.of(Dimension::Sharding).vary() || !plan.recipe().tuning.is_full() {
        return vec![base.sharding];
    }
    let mut out = match plan.recipe().software {
        Software::MegatronLegacy | Software::MegatronCoreLocal => {
            vec![DpSharding::OptimizerStates, DpSharding::Replicated]
        }
        // Megatron's FSDP is proposed where it has been used: without a pipeline.
        Software::MegatronCoreTe if p == 1 => vec![
            DpSharding::OptimizerStates,
            DpSharding::Replicated,
            DpSharding::Gradients,
            DpSharding::Parameters,
        ],
        Software::MegatronCoreTe => vec![DpSharding::OptimizerStates, DpSharding::Replicated],
        // DeepSpeed's pipeline engine takes stages up to 1 (`runtime/pipe/engine.py`).
        Software::MegatronDeepspeed | Software::GptNeox if p > 1 => {
            vec![DpSharding::OptimizerStates, DpSharding::Replicated]
        }
        Software::MegatronDeepspeed | Software::GptNeox => vec![
            DpSharding::OptimizerStates,
            DpSharding::Replicated,
            DpSharding::Gradients,
            DpSharding::Parameters,
        ],
        Software::Torchtitan
        | Software::Nanotron
        | Software::TorchFsdp
        | Software::HfTransformers
        | Software::Torchtune
        | Software::Torchtune06
        | Software::Litgpt
        | Software::Unsloth
        | Software::Automodel
        | Software::Olmo => Vec::new(),
    };
    if !out.contains(&base.sharding) {
        out.push(base.sharding);
    }
    out
}

/// The overlap of reductions: as stated, or the most that the software does where the reader leaves it open. More of it never
/// takes longer (`crates/search/tests/optimal.rs` holds that against the pairs) and changes no byte of memory.
fn overlaps(plan: &Plan, choices: &Choices, stated: Overlap, sharding: DpSharding) -> Overlap {
    let sharded = sharding != DpSharding::Replicated;
    let core = matches!(plan.recipe().software, Software::MegatronCoreLocal | Software::MegatronCoreTe);
    if core && choices.of(Dimension::Overlap).vary() {
        return Overlap { grad_reduce: true, param_gather: sharded, ..stated };
    }
    // Weights are gathered behind compute only with gradients reduced so (`arguments.py:validate_args`).
    Overlap { param_gather: stated.param_gather && sharded && stated.grad_reduce, ..stated }
}
