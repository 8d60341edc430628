//! What may be recomputed, as far as the software can express it.

use crate::dimension::{Choices, Dimension};
use shardscope_plan::{
    AttentionKernel, Fp8Recipe, Plan, Recompute, RecomputeModule, RecomputedModules, Variant,
};

/// The most numbers of fully recomputed layers that are tried: every one if a chunk has no more layers than that, as
/// in all known models, otherwise this many, evenly spread.
const MAX_BLOCKS: u64 = 128;

/// The numbers of recomputed layers that are tried for a chunk of `layers`, in ascending order.
fn blocks(layers: u64) -> impl Iterator<Item = u64> {
    let most = layers.saturating_sub(1);
    let count = most.min(MAX_BLOCKS);
    (1..=count).map(move |place| most * place / count)
}

/// Every recomputation of a chunk of at most `layers` layers: none first, everything last, the plan's `lists` in
/// between.
pub(super) fn recomputations(
    plan: &Plan,
    base: &Variant,
    choices: &Choices,
    lists: &[Vec<RecomputeModule>],
    layers: u64,
) -> Vec<Recompute> {
    if !choices.get(Dimension::Recompute).vary() {
        return vec![base.recompute.clone()];
    }
    let offers = &plan.recipe().software.semantics().offers;
    let mut out = vec![Recompute::None];
    out.extend(lists.iter().cloned().map(Recompute::Selective));
    if offers.recomputes_blocks {
        out.extend(blocks(layers).map(|num_layers| Recompute::Block { num_layers, distribute: false }));
    }
    if offers.recomputes_layers {
        out.push(Recompute::Uniform { num_layers: 1, distribute: false });
    }
    if !out.contains(&base.recompute) {
        out.push(base.recompute.clone());
    }
    out
}

/// Lists of modules that save anything in `plan` and that Megatron accepts (`transformer_config.py:__post_init__`).
pub(super) fn lists(plan: &Plan) -> Vec<Vec<RecomputeModule>> {
    let (model, recipe) = (plan.model(), plan.recipe());
    let unfused = recipe.attention_kernel == AttentionKernel::Unfused;
    match recipe.software.semantics().offers.recomputed_modules {
        RecomputedModules::Scores if unfused => return vec![vec![RecomputeModule::CoreAttention]],
        RecomputedModules::Scores | RecomputedModules::Absent => return Vec::new(),
        RecomputedModules::Named => {}
    }
    // With delayed scaling, Megatron accepts neither recomputed norms nor recomputed MoE activations.
    let delayed = recipe.fp8.as_ref().is_some_and(|fp8| fp8.recipe == Fp8Recipe::Delayed);
    let experts = model.experts.as_ref();
    let shared = experts.is_some_and(|experts| experts.shared_expert_intermediate_size.unwrap_or(0) > 0);
    let dense = experts.is_none() || model.moe_layers() < model.num_layers;
    let modules = [
        (RecomputeModule::CoreAttention, unfused),
        (RecomputeModule::LayerNorm, !delayed),
        (RecomputeModule::MlaUpProjection, model.latent.is_some()),
        (RecomputeModule::Mlp, dense),
        (RecomputeModule::MoeActivation, experts.is_some() && recipe.moe.grouped_gemm && !delayed),
        (RecomputeModule::SharedExperts, shared && !recipe.overlap.shared_expert),
        (RecomputeModule::Moe, experts.is_some()),
    ];
    // All subsets, each module doubling the lists before it: 127 at most.
    let mut lists: Vec<Vec<RecomputeModule>> = vec![Vec::new()];
    for (module, _) in modules.into_iter().filter(|(_, takes)| *takes) {
        // A recomputed MoE layer already includes its activation and shared experts.
        let inside = |held: &RecomputeModule| {
            matches!(held, RecomputeModule::MoeActivation | RecomputeModule::SharedExperts)
        };
        let more: Vec<Vec<RecomputeModule>> = lists
            .iter()
            .filter(|list| module != RecomputeModule::Moe || !list.iter().any(inside))
            .map(|list| list.iter().copied().chain([module]).collect())
            .collect();
        lists.extend(more);
    }
    lists.retain(|list| !list.is_empty());
    lists
}

#[cfg(test)]
mod tests {
    use super::{MAX_BLOCKS, blocks};

    #[test]
    fn blocks_are_tried_one_by_one_up_to_the_bound() {
        assert_eq!(blocks(0).count() + blocks(1).count(), 0);
        assert_eq!(blocks(4).collect::<Vec<_>>(), [1, 2, 3]);
        let whole: Vec<u64> = blocks(MAX_BLOCKS + 1).collect();
        assert_eq!(whole, (1..=MAX_BLOCKS).collect::<Vec<_>>());
        let spread: Vec<u64> = blocks(4096).collect();
        assert_eq!((spread.len() as u64, spread[0], spread.last()), (MAX_BLOCKS, 31, Some(&4095)));
        assert!(spread.windows(2).all(|pair| pair[0] < pair[1]));
    }
}
