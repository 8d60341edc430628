//! Layers are recomputed although there is memory for saving their activations.

use crate::finding::Advisor;
use shardscope_plan::{AttentionKernel, Recompute, RecomputeModule};
use shardscope_report::Finding;
use shardscope_units::gib;

pub(crate) fn finding(advisor: &Advisor<'_>) -> Option<Finding> {
    if !advisor.plan.recipe().recompute.is_whole() {
        return None;
    }
    let mut lighter = vec![(Recompute::None, "turn off activation recomputation")];
    // Fused kernels recompute scores anyway: selective recomputation would save as much.
    if advisor.plan.recipe().attention_kernel == AttentionKernel::Unfused {
        let core = Recompute::Selective(vec![RecomputeModule::CoreAttention]);
        lighter.push((core, "recompute core attention only (--recompute-granularity selective)"));
    }
    // The first that fits: nothing recomputed is the faster of the two.
    let fitting = lighter.into_iter().find_map(|(recompute, name)| {
        let mut variant = advisor.variant();
        variant.recompute = recompute;
        let trial = advisor.attempt(&variant)?;
        (trial.fits(advisor.capacity()) && advisor.gains(&trial)).then_some((name, trial))
    });
    let (name, trial) = fitting?;
    let message = format!("{name}: peak {}, still fits{}", gib(trial.peak), trial.pace());
    Some(trial.finding(
        "recompute-too-much",
        message,
        "full recomputation repeats the forward pass, a third more compute (Korthikanti et al. 2022, section 5)",
    ))
}
