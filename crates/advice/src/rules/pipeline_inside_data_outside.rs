//! Pipeline neighbours share a node while the data-parallel groups, which send more, do not.

use crate::finding::Advisor;
use shardscope_estimate::traffic::Detour;
use shardscope_report::{Expected, Finding};
use shardscope_units::size;

pub(crate) fn finding(advisor: &Advisor<'_>) -> Option<Finding> {
    let wanted = Detour::PipelineInsideDataOutside;
    let detour = advisor.report.detours.iter().find(|detour| detour.detour == wanted)?;
    Some(Finding {
        code: "pipeline-inside-data-outside",
        message: format!(
            "pipeline stages share a node while data-parallel groups of {} cross nodes: {} per GPU per step; {}",
            detour.ranks,
            size(detour.wire),
            advisor.waiting("data")
        ),
        why: "the fast links carry the smaller traffic; the default order of ranks puts pipeline stages on \
              different nodes (megatron/core/parallel_state.py)"
            .to_owned(),
        change: Vec::new(),
        expected: Expected::default(),
    })
}
