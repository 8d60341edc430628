//! Tensor parallelism without sequence parallelism.

use crate::finding::Advisor;
use shardscope_report::Finding;
use shardscope_units::{Bytes, gib};

pub(crate) fn finding(advisor: &Advisor<'_>) -> Option<Finding> {
    let mut variant = advisor.variant();
    if variant.sequence_parallel || variant.tensor < 2 {
        return None;
    }
    variant.sequence_parallel = true;
    let trial = advisor.attempt(&variant)?;
    let saved = advisor.peak().less(trial.peak);
    if saved == Bytes::ZERO {
        return None;
    }
    let message = format!("turn on sequence parallelism (--sequence-parallel): saves {}", gib(saved));
    Some(trial.finding(
        "sequence-parallel-off",
        message,
        "norms, dropouts and the residual stream are replicated on every tensor-parallel rank; an all-gather and a \
         reduce-scatter together send what the all-reduce sends now (Korthikanti et al. 2022, section 4.2.2)",
    ))
}
