//! Which of two layouts takes no less time, or no more memory, without estimating either. Each rule is a property of
//! the engine's estimates that the tests below check against every pair: a rule that failed would cost the search an
//! answer.

use shardscope_plan::{DpSharding, Recompute};

/// Whether `more` recomputes everything that `less` does: then a device holds no more with `more`, and a step takes
/// no less time if [`recomputation_takes_time`].
pub(crate) fn is_within(less: &Recompute, more: &Recompute) -> bool {
    use Recompute as R;
    match (less, more) {
        (R::None, R::None | R::Selective(_))
        // Uniform in runs of one layer recomputes everything and holds one layer at a time. Longer runs hold more
        // layers at once, so they may be heavier than a list of modules.
        | (R::None | R::Selective(_), R::Uniform { num_layers: 1, distribute: false })
        | (R::None, R::Block { distribute: false, .. })
        | (R::Block { distribute: false, .. }, R::Uniform { num_layers: 1, distribute: false }) => true,
        (R::Selective(some), R::Selective(all)) => some.iter().all(|module| all.contains(module)),
        (
            R::Block { num_layers: some, distribute: false },
            R::Block { num_layers: all, distribute: false },
        ) => some <= all,
        (one, other) => one == other,
    }
}

/// Whether more recomputation takes no less time under `sharding`. Weights gathered and gradients reduced for every
/// micro-batch hide behind recomputation, so a step that waits for them may become slightly shorter.
pub(crate) fn recomputation_takes_time(sharding: DpSharding) -> bool {
    !matches!(sharding, DpSharding::Parameters | DpSharding::Gradients)
}

/// Whether a device holds no more under `one` than under `other`.
pub(crate) fn is_no_heavier(one: DpSharding, other: DpSharding) -> bool {
    use DpSharding as S;
    match one {
        // ZeRO-3 gathers entire layers on top of its shard, so neither of the two is always lighter.
        S::Gradients => other != S::Parameters,
        S::OptimizerStates => matches!(other, S::OptimizerStates | S::Replicated),
        // Gathered weights may take more memory than sharding them saves.
        S::Replicated | S::Parameters => one == other,
    }
}

/// Those of `shardings` that no other is lighter than.
pub(crate) fn lightest<T: Copy>(shardings: &[(DpSharding, T)]) -> impl Iterator<Item = (DpSharding, T)> {
    let is_heavier =
        |one: DpSharding| shardings.iter().any(|(other, _)| *other != one && is_no_heavier(*other, one));
    shardings.iter().copied().filter(move |(one, _)| !is_heavier(*one))
}

/// Whether a step takes no longer under `one` than under `other`.
pub(crate) fn is_no_slower(one: DpSharding, other: DpSharding) -> bool {
    use DpSharding as S;
    match one {
        S::OptimizerStates => other != S::Parameters,
        // Gathering weights and scattering gradients after every micro-batch may hide better than doing so once per
        // step, but sends more often.
        S::Gradients | S::Replicated | S::Parameters => one == other,
    }
}

#[cfg(test)]
mod tests {
    use super::{is_no_heavier, is_no_slower, is_within, recomputation_takes_time};
    use crate::pairs::plan_set;
    use crate::{Dimension, single_edits};
    use shardscope_estimate::memory_totals;
    use shardscope_estimate::time::exact_step_seconds;
    use shardscope_plan::{DpSharding, Overlap, Plan, Recompute, Variant};

    /// Pairs with further settings: every software whose sharding or recomputation the search varies, and every kind
    /// of schedule.
    const PLANS: [(&str, &[(&str, &str)]); 19] = [
        ("llama-3 8b, 8 H100", &[]),
        ("llama-3 8b, 64 H100", &[]),
        ("llama-3 70b, 128 H100", &[]),
        ("llama-3 405b, 16384 H100", &[]),
        ("gpt-3 175b, 512 A100", &[]),
        ("gpt-3 175b, 1024 A100", &[]),
        ("mixtral 8x7b, 64 H100", &[]),
        ("qwen3 235b, 256 H100", &[]),
        ("deepseek-v3, 2048 H800", &[]),
        ("bloom 176b, 384 A100", &[]),
        ("gpt-3 530b, 2240 A100", &[]),
        ("gpt-3 1t, 512 A100", &[]),
        ("llama-3 70b, 128 H100", &[("pipeline_schedule", "zb-h1")]),
        ("llama-3 70b, 128 H100", &[("pipeline_schedule", "zb-v")]),
        ("llama-3 70b, 128 H100", &[("pipeline_schedule", "dualpipe")]),
        ("gpt-3 175b, 512 A100", &[("software", "megatron_core_local")]),
        ("gpt-3 175b, 512 A100", &[("software", "megatron_legacy")]),
        ("gpt-3 175b, 1024 A100", &[("software", "megatron_deepspeed")]),
        ("gpt-3 175b, 1024 A100", &[("software", "gpt_neox")]),
    ];

    /// Number of shapes examined per plan.
    const SHAPES: usize = 4;

    const SHARDINGS: [DpSharding; 4] =
        [DpSharding::Replicated, DpSharding::OptimizerStates, DpSharding::Gradients, DpSharding::Parameters];

    /// A layout with the bytes of its fullest device, required and reserved, and its step.
    type Measured = (Recompute, DpSharding, [u64; 2], f64);

    fn measured(plan: &Plan, recompute: &Recompute, sharding: DpSharding) -> Option<Measured> {
        let own = Variant::from_plan(plan);
        let overlap =
            Overlap { param_gather: sharding != DpSharding::Replicated, grad_reduce: true, ..own.overlap };
        let plan = Variant { recompute: recompute.clone(), sharding, overlap, ..own }.apply(plan)?;
        let totals = memory_totals(&plan);
        let most = |of: &dyn Fn(&shardscope_estimate::Totals) -> u64| totals.iter().map(of).max();
        let bytes = [most(&|one| one.peak_required.get())?, most(&|one| one.peak_reserved.get())?];
        Some((recompute.clone(), sharding, bytes, exact_step_seconds(&plan).get()))
    }

    /// The plan's own layout and some that differ from it in one size or flag.
    fn shapes(plan: &Plan) -> Vec<Plan> {
        let edits = single_edits(plan);
        let others = edits.iter().filter(|edit| {
            !matches!(edit.dimension, Dimension::Recompute | Dimension::Sharding | Dimension::Overlap)
        });
        let every = others.clone().count().div_ceil(SHAPES).max(1);
        let mut shapes = vec![plan.clone()];
        shapes.extend(others.step_by(every).filter_map(|edit| edit.variant.apply(plan)));
        shapes
    }

    fn recomputations(plan: &Plan) -> Vec<Recompute> {
        let mut all = vec![Recompute::None];
        for edit in single_edits(plan) {
            // There are many block lengths: take the shortest and every third.
            let short =
                !matches!(edit.variant.recompute, Recompute::Block { num_layers, .. } if num_layers % 3 != 1);
            if edit.dimension == Dimension::Recompute && short && !all.contains(&edit.variant.recompute) {
                all.push(edit.variant.recompute);
            }
        }
        // A part of DeepSeek-V3's 90 lists is enough.
        let every = all.len().div_ceil(16).max(1);
        let last = all.last().cloned();
        let mut some: Vec<Recompute> = all.into_iter().step_by(every).collect();
        some.extend(last);
        some
    }

    #[test]
    fn what_the_search_leaves_out_unseen_is_no_better() {
        let mut compared = 0;
        for (name, set) in PLANS {
            let Some(plan) = plan_set(name, set) else { continue };
            for shape in shapes(&plan) {
                let mut all: Vec<Measured> = Vec::new();
                for recompute in recomputations(&shape) {
                    all.extend(
                        SHARDINGS.iter().filter_map(|sharding| measured(&shape, &recompute, *sharding)),
                    );
                }
                for one in &all {
                    for other in &all {
                        let said =
                            || format!("{name} {set:?} {:?}: {one:?} {other:?}", Variant::from_plan(&shape));
                        if one.1 == other.1 && is_within(&one.0, &other.0) {
                            let comparable = recomputation_takes_time(one.1);
                            assert!(!comparable || one.3 <= other.3, "slower: {}", said());
                            assert!((0..2).all(|kind| one.2[kind] >= other.2[kind]), "lighter: {}", said());
                            compared += 1;
                        }
                        if one.0 == other.0 {
                            let faster = is_no_slower(one.1, other.1);
                            assert!(!faster || one.3 <= other.3, "slower: {}", said());
                            let lighter = is_no_heavier(other.1, one.1);
                            let heavier = (0..2).all(|kind| one.2[kind] >= other.2[kind]);
                            assert!(!lighter || heavier, "lighter: {}", said());
                            compared += 1;
                        }
                    }
                }
            }
        }
        assert!(compared > 10_000, "{compared}");
    }

    /// Layouts without this overlap, which the space excludes.
    #[test]
    fn overlapped_tensor_communication_is_never_worse() {
        let mut compared = 0;
        for (name, set) in PLANS {
            let Some(plan) = plan_set(name, set) else { continue };
            for shape in shapes(&plan) {
                let own = Variant::from_plan(&shape);
                if !own.software.semantics().transformer_engine {
                    continue;
                }
                let with = |tensor: bool| {
                    let overlap = Overlap { tensor, ..own.overlap };
                    let plan = Variant { overlap, ..own.clone() }.apply(&shape);
                    plan.map(|plan| (exact_step_seconds(&plan), memory_totals(&plan)))
                };
                if let (Some(on), Some(off)) = (with(true), with(false)) {
                    assert!(on.0 <= off.0 && on.1 == off.1, "{name} {set:?}: {own:?}");
                    compared += 1;
                }
            }
        }
        assert!(compared > 50, "{compared}");
    }
}
