//! Tokens that cross the network on their way to experts.

use crate::finding::Advisor;
use shardscope_estimate::traffic::Detour;
use shardscope_report::{Expected, Finding};
use shardscope_units::size;

pub(crate) fn finding(advisor: &Advisor<'_>) -> Option<Finding> {
    // The estimate of traffic has decided that it is a detour; advice only words it.
    let detour = advisor.report.detours.iter().find(|detour| detour.detour == Detour::ExpertsCrossNetwork)?;
    Some(Finding {
        code: "experts-cross-network",
        message: format!(
            "expert all-to-all crosses nodes: {} per GPU per step, {} of it exposed; {}",
            size(detour.wire),
            size(detour.exposed),
            advisor.waiting("expert")
        ),
        why: format!(
            "the {} ranks that exchange tokens span several fast-link domains; a smaller expert parallel size, or \
             expert tensor size 1, keeps them together (Megatron-LM, megatron/core/transformer/moe/README.md)",
            detour.ranks
        ),
        // No change: which size keeps groups together depends on what else shares the node.
        change: Vec::new(),
        expected: Expected::default(),
    })
}
