//! Optimizer states are replicated although several replicas could shard them.

use crate::finding::Advisor;
use shardscope_plan::DpSharding;
use shardscope_report::Finding;
use shardscope_units::{Bytes, gib};

pub(crate) fn finding(advisor: &Advisor<'_>) -> Option<Finding> {
    // Elsewhere another engine would have to wrap the model, and adapters have hardly any states to shard.
    if advisor.plan.recipe().software.semantics().steps_parameters {
        return None;
    }
    let mut variant = advisor.variant();
    if variant.sharding != DpSharding::Replicated || advisor.plan.layout().dense_shards() < 2 {
        return None;
    }
    variant.sharding = DpSharding::OptimizerStates;
    let trial = advisor.attempt(&variant)?;
    let saved = advisor.peak().less(trial.peak);
    // If something else determines the peak, there is nothing to report.
    if saved == Bytes::ZERO {
        return None;
    }
    let message = format!("shard the optimizer states (--use-distributed-optimizer): saves {}", gib(saved));
    let shards = advisor.plan.layout().dense_shards();
    Some(trial.finding(
        "optimizer-not-sharded",
        message,
        format!(
            "each of {shards} replicas holds all optimizer states; sharded, gradients are reduce-scattered and \
             parameters all-gathered, which sends as much as the all-reduce now (Rajbhandari et al. 2020, section 7)"
        ),
    ))
}
