//! Attention that writes its scores to memory.

use crate::finding::{Advisor, Trial};
use shardscope_estimate::device_peak;
use shardscope_estimate::time::exact_step_seconds;
use shardscope_plan::{AttentionKernel, Field, Plan};
use shardscope_report::Finding;
use shardscope_units::gib;

pub(crate) fn finding(advisor: &Advisor<'_>) -> Option<Finding> {
    let plan = advisor.plan;
    // Other software uses different settings for it.
    if plan.recipe().attention_kernel != AttentionKernel::Unfused
        || !plan.recipe().software.semantics().offers.chooses_attention
    {
        return None;
    }
    let mut recipe = plan.recipe().clone();
    recipe.attention_kernel = AttentionKernel::Flash;
    let flash =
        Plan::new(plan.model().clone(), plan.cluster().clone(), plan.layout().clone(), recipe).ok()?;
    let peak = device_peak(&flash).0;
    let change = vec![(Field::AttentionBackend, "flash".to_owned())];
    let trial = Trial { change, peak, step: Some(exact_step_seconds(&flash)) };
    let saved = advisor.peak().less(peak);
    let message = format!("turn on flash attention: {} less{}", gib(saved), trial.pace());
    Some(trial.finding(
        "unfused-attention",
        message,
        "unfused attention keeps scores of every head for every pair of tokens and passes them through memory several \
         times (Dao et al. 2022, section 3)",
    ))
}
