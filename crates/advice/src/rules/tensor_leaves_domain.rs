//! A tensor-parallel group that leaves its fast-link domain.

use crate::finding::Advisor;
use shardscope_estimate::traffic::Detour;
use shardscope_report::{Expected, Finding};
use shardscope_units::size;

pub(crate) fn finding(advisor: &Advisor<'_>) -> Option<Finding> {
    let detour = advisor.report.detours.iter().find(|detour| detour.detour == Detour::TensorLeavesDomain)?;
    let domain = advisor.plan.cluster().fast_domain;
    let message = format!(
        "tensor-parallel groups of {} span more than one NVLink domain of {domain}: {} per GPU per step over the {}, \
         {} of it exposed; {}",
        detour.ranks,
        size(detour.wire),
        detour.link.name(),
        size(detour.exposed),
        advisor.waiting("tensor")
    );
    let why = "tensor parallelism communicates in every layer; keep it inside a node and use pipeline parallelism across nodes \
               (Narayanan et al. 2021, takeaway 1)";
    let mut variant = advisor.variant();
    // By powers of two, as domains are, so that pipeline and tensor sizes stay usual.
    let factor = variant.tensor.div_ceil(domain.max(1)).next_power_of_two();
    if factor > 1 && variant.tensor.is_multiple_of(factor) {
        if variant.expert_tensor == variant.tensor {
            variant.expert_tensor /= factor;
        }
        variant.tensor /= factor;
        // As many ranks per replica as before: the factor moves from tensor ranks to stages.
        variant.pipeline *= factor;
        variant.sequence_parallel &= variant.tensor > 1;
        let trial = advisor.attempt(&variant);
        let trial = trial.filter(|trial| advisor.gains(trial) && trial.fits(advisor.capacity()));
        if let Some(trial) = trial {
            return Some(trial.finding("tensor-leaves-domain", message, why));
        }
    }
    // If the layers do not divide over that many stages, or such a layout does not fit or is slower, the finding has
    // no change.
    Some(Finding {
        code: "tensor-leaves-domain",
        message,
        why: why.to_owned(),
        change: Vec::new(),
        expected: Expected::default(),
    })
}
