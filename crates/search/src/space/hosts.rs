//! What may be kept on the host: optimizer states, and tensors saved by modules of a layer.

use crate::dimension::{Choices, Dimension};
use shardscope_estimate::sent_by_modules;
use shardscope_plan::{HostOptimizer, OffloadModule, OffloadModules, Plan, Recompute, Variant};

/// Whether optimizer states stay on the host: as stated or, if the reader opens it and the software supports it,
/// both.
pub(super) fn optimizers(plan: &Plan, base: &Variant, choices: &Choices) -> Vec<bool> {
    let offers = plan.recipe().software.semantics().offers.host_optimizer;
    let moves = offers != HostOptimizer::Absent && plan.recipe().tuning.is_full();
    if choices.get(Dimension::Offload).vary() && moves {
        vec![base.optimizer_on_host, !base.optimizer_on_host]
    } else {
        vec![base.optimizer_on_host]
    }
}

/// Sets of modules whose saved tensors are kept on the host: as stated and, if the reader opens it and the software
/// supports it, every set of modules that send anything in `plan`.
pub(super) fn modules(plan: &Plan, base: &Variant, choices: &Choices) -> Vec<OffloadModules> {
    let mut sets = vec![base.offloaded];
    let offers = plan.recipe().software.semantics().offers.offloads_modules;
    if !choices.get(Dimension::OffloadModules).vary() || !offers || !plan.recipe().tuning.is_full() {
        return sets;
    }
    let mut all = vec![OffloadModules::default()];
    for module in OffloadModule::BEGUN.into_iter().filter(|module| sends(plan, base, *module)) {
        let more: Vec<OffloadModules> = all.iter().map(|set| set.with(module)).collect();
        all.extend(more);
    }
    // The projection's input is core attention's output, so it is offloaded only along with it
    // (`transformer_config.py:__post_init__`).
    let alone = |set: &OffloadModules| {
        set.has(OffloadModule::AttentionProjection) && !set.has(OffloadModule::CoreAttention)
    };
    sets.extend(all.into_iter().filter(|set| *set != base.offloaded && !alone(set)));
    sets
}

/// Whether `module` occurs in `plan`'s layers with tensors large enough to go to the host, whatever is recomputed.
fn sends(plan: &Plan, base: &Variant, module: OffloadModule) -> bool {
    let beside = match module {
        OffloadModule::AttentionProjection => OffloadModules::default().with(OffloadModule::CoreAttention),
        _ => OffloadModules::default(),
    };
    let sent = |offloaded: OffloadModules| {
        let variant = Variant { offloaded, recompute: Recompute::None, fp8: None, ..base.clone() };
        let plan = variant.apply(plan)?;
        Some(plan.layout().model_chunks().map(|chunk| sent_by_modules(&plan, chunk)).max())
    };
    // Measured on top of what it requires: the difference is the module's own.
    sent(beside.with(module)) > sent(beside)
}
