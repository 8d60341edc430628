//! A smaller tensor parallel size that fits.

use crate::finding::Advisor;
use shardscope_report::Finding;
use shardscope_units::gib;

pub(crate) fn finding(advisor: &Advisor<'_>) -> Option<Finding> {
    let mut variant = advisor.variant();
    if variant.tensor < 2 || !advisor.report.memory.fits {
        return None;
    }
    // ETP follows TP unless stated otherwise, and must not be left larger than it.
    if variant.expert_tensor == variant.tensor {
        variant.expert_tensor /= 2;
    }
    variant.tensor /= 2;
    // Without tensor ranks there is no sequence to split over them.
    variant.sequence_parallel &= variant.tensor > 1;
    let trial = advisor.attempt(&variant)?;
    // The rule only compares layouts that fit.
    if !trial.fits(advisor.capacity()) || !advisor.gains(&trial) {
        return None;
    }
    let message = format!("TP {} fits too: peak {}{}", variant.tensor, gib(trial.peak), trial.pace());
    Some(trial.finding(
        "lower-tensor",
        message,
        "of two layouts that fit, the one with less tensor parallelism is usually faster: larger GEMMs and less \
         communication (Azure NeMo Megatron results, 2022: 40B with TP 4 in 18.8 s, with TP 8 in 21.3 s)",
    ))
}
