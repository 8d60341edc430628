//! The plan does not fit: the smallest changes that make it fit, the cheapest first.

use crate::finding::{Advisor, Trial};
use shardscope_plan::{AttentionKernel, DpSharding, Recompute, RecomputeModule, Variant};
use shardscope_report::Finding;
use shardscope_units::gib;

/// Most ways out that are named.
const SHOWN: usize = 4;

/// A way to need less, in rising order of what it usually costs in time.
type Way = (&'static str, fn(&Advisor<'_>, &mut Variant) -> bool);

const WAYS: [Way; 11] = [
    ("shard optimizer states over the data-parallel ranks", |advisor, variant| {
        let shards = !advisor.plan.recipe().software.semantics().steps_parameters;
        let off = shards && variant.sharding == DpSharding::Replicated;
        variant.sharding = DpSharding::OptimizerStates;
        off
    }),
    ("turn on sequence parallelism", |_, variant| {
        let off = !variant.sequence_parallel && variant.tensor > 1;
        variant.sequence_parallel = true;
        off
    }),
    ("recompute core attention", |advisor, variant| {
        variant.recompute = Recompute::Selective(vec![RecomputeModule::CoreAttention]);
        advisor.plan.recipe().recompute == Recompute::None
            && advisor.plan.recipe().attention_kernel == AttentionKernel::Unfused
    }),
    ("recompute MoE activations and layer norms", |advisor, variant| {
        variant.recompute =
            Recompute::Selective(vec![RecomputeModule::MoeActivation, RecomputeModule::LayerNorm]);
        advisor.plan.recipe().recompute == Recompute::None && advisor.plan.model().experts.is_some()
    }),
    ("turn off interleaved (virtual) pipelining", |_, variant| {
        let on = variant.virtual_pipeline > 1;
        variant.virtual_pipeline = 1;
        on
    }),
    ("smaller micro-batch", |_, variant| {
        let even = variant.micro_batch_size.is_multiple_of(2);
        variant.micro_batch_size /= 2;
        even
    }),
    ("more pipeline parallelism", |_, variant| {
        variant.pipeline *= 2;
        true
    }),
    ("more tensor parallelism", |_, variant| {
        grow_tensor(variant, 2);
        true
    }),
    ("more context parallelism", |_, variant| {
        variant.context *= 2;
        true
    }),
    ("full activation recomputation", |advisor, variant| {
        variant.recompute = Recompute::Uniform { num_layers: 1, distribute: false };
        !matches!(advisor.plan.recipe().recompute, Recompute::Uniform { .. })
    }),
    ("more tensor and pipeline parallelism", |_, variant| {
        grow_tensor(variant, 2);
        variant.pipeline *= 2;
        true
    }),
];

fn grow_tensor(variant: &mut Variant, factor: u64) {
    if variant.expert_tensor == variant.tensor {
        variant.expert_tensor *= factor;
    }
    variant.tensor *= factor;
    variant.sequence_parallel = true;
}

/// The degrees that differ, from which value to which: ` (TP 4 → 8, PP 2 → 4)`.
fn degrees(from: &Variant, to: &Variant) -> String {
    let degrees = [
        ("TP", from.tensor, to.tensor),
        ("PP", from.pipeline, to.pipeline),
        ("VPP", from.virtual_pipeline, to.virtual_pipeline),
        ("CP", from.context, to.context),
        ("MBS", from.micro_batch_size, to.micro_batch_size),
    ];
    let changed = degrees.into_iter().filter(|(_, from, to)| from != to);
    let changed: Vec<String> = changed.map(|(name, from, to)| format!("{name} {from} → {to}")).collect();
    if changed.is_empty() { String::new() } else { format!(" ({})", changed.join(", ")) }
}

/// The ways out; or, when none of them suffices alone, the one that comes nearest together with full
/// recomputation.
pub(crate) fn findings(advisor: &Advisor<'_>) -> Vec<Finding> {
    if advisor.report.memory.fits {
        return Vec::new();
    }
    let capacity = advisor.capacity();
    let mut out: Vec<(String, Trial)> = Vec::new();
    for recompute in [false, true] {
        if !out.is_empty() {
            break;
        }
        let first = if recompute { "full activation recomputation, and " } else { "" };
        for (name, way) in &WAYS {
            let mut variant = advisor.variant();
            if !way(advisor, &mut variant) {
                continue;
            }
            if recompute {
                variant.recompute = Recompute::Uniform { num_layers: 1, distribute: false };
            }
            if let Some(trial) = advisor.attempt(&variant)
                && trial.fits(capacity)
            {
                out.push((format!("{first}{name}{}", degrees(&advisor.variant(), &variant)), trial));
            }
        }
    }
    // By time where it is known; the order of the ways stands otherwise.
    out.sort_by(|(_, one), (_, other)| {
        let key = |trial: &Trial| trial.step.map_or(f64::MAX, shardscope_units::Seconds::get);
        key(one).total_cmp(&key(other))
    });
    let lacking = advisor.peak().less(capacity);
    let mut findings = Vec::with_capacity(SHOWN);
    for (name, trial) in out.into_iter().take(SHOWN) {
        let message = format!("{name}: peak {}{}", gib(trial.peak), trial.pace());
        let why = format!("currently {} over capacity", gib(lacking));
        findings.push(trial.finding("out-of-memory", message, why));
    }
    findings
}
