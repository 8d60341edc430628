//! Tokens sent to their experts by a simpler method than the software offers.

use crate::finding::{Advisor, Trial};
use crate::rules::WORTH;
use shardscope_estimate::device_peak;
use shardscope_estimate::time::exact_step_seconds;
use shardscope_plan::{Dispatcher, Field, MoeRecipe, NumberFormat, Plan};
use shardscope_report::Finding;

/// Minimum CUDA compute capability for the fused exchanges (`DeepEP`, README: SM90 and newer).
const FUSED_FROM: u64 = 9;

pub(crate) fn finding(advisor: &Advisor<'_>) -> Option<Finding> {
    let plan = advisor.plan;
    plan.model().experts.as_ref()?;
    let offered = plan.recipe().software.semantics().offers.dispatchers;
    // They are ordered from the simplest on, so those before the plan's own would be a step back.
    let own = offered.iter().position(|one| *one == plan.recipe().moe.dispatcher)?;
    let trials =
        offered.get(own + 1..)?.iter().filter_map(|&one| attempt(plan, one).map(|trial| (one, trial)));
    let fit = trials.filter(|(_, trial)| trial.fits(advisor.capacity()));
    let (dispatcher, trial) = fit.min_by(|(_, one), (_, other)| one.seconds().total_cmp(&other.seconds()))?;
    // A smaller gain is not worth changing the dispatcher.
    if trial.seconds() > advisor.report.time.step.get() * (1.0 - WORTH) {
        return None;
    }
    let message = format!(
        "send tokens to their experts by {} (--moe-token-dispatcher-type){}; {}",
        name(dispatcher),
        trial.pace(),
        advisor.waiting("expert")
    );
    let why = match dispatcher {
        Dispatcher::Flex => {
            "each token goes once to every rank, and once over the network to every node, that has one of its experts; all-to-all \
             sends a copy for each expert (DeepEP and HybridEP; Megatron-LM, megatron/core/transformer/moe/README.md)"
        }
        Dispatcher::AllToAll | Dispatcher::AllGather => {
            "each token goes only to its own experts; all-gather sends every token to every rank (Megatron-LM, \
             megatron/core/transformer/moe/README.md)"
        }
    };
    Some(trial.finding("expert-dispatcher", message, why))
}

const fn name(dispatcher: Dispatcher) -> &'static str {
    match dispatcher {
        Dispatcher::AllGather => "all-gather",
        Dispatcher::AllToAll => "all-to-all",
        Dispatcher::Flex => "DeepEP or HybridEP",
    }
}

/// The plan with another dispatcher; `None` if it has no exchange, or if the software or the device refuses.
fn attempt(plan: &Plan, dispatcher: Dispatcher) -> Option<Trial> {
    let (layout, accelerator) = (plan.layout(), &plan.cluster().accelerator);
    let mut recipe = plan.recipe().clone();
    let own = recipe.moe;
    // One expert rank has no exchange.
    if layout.expert * layout.expert_tensor < 2 {
        return None;
    }
    let mut change = Vec::new();
    recipe.moe = match dispatcher {
        Dispatcher::Flex => {
            // Their kernels require 32-bit probabilities and support no padding to capacity. Without a known compute
            // capability (other vendors) DeepEP is not available.
            let takes = accelerator.capability.is_some_and(|capability| capability >= FUSED_FROM);
            if !takes || own.pad_to_capacity {
                return None;
            }
            // Within a rack of several nodes only HybridEP (`moe_flex_dispatcher_backend`).
            let rack = plan.cluster().fast_domain > plan.cluster().gpus_per_node;
            let backend = if rack { "hybridep" } else { "deepep" };
            change.push((Field::MoeTokenDispatcherType, "flex".to_owned()));
            change.push((Field::MoeFlexDispatcherBackend, backend.to_owned()));
            // Stated, because the fused kernels refuse other types.
            change.push((Field::MoeRouterDtype, "fp32".to_owned()));
            MoeRecipe { dispatcher, router_dtype: NumberFormat::Fp32, ..own }
        }
        Dispatcher::AllToAll => {
            change.push((Field::MoeTokenDispatcherType, "alltoall".to_owned()));
            MoeRecipe { dispatcher, ..own }
        }
        // The simplest dispatcher is the starting point, never a proposal.
        Dispatcher::AllGather => return None,
    };
    let changed = Plan::new(plan.model().clone(), plan.cluster().clone(), layout.clone(), recipe).ok()?;
    let peak = device_peak(&changed).0;
    Some(Trial { change, peak, step: Some(exact_step_seconds(&changed)) })
}
