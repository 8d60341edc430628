//! The groups of every dimension in the notation `[n0_g0 n0_g1]`, and the stages.

use super::sheet::Sheet;
use shardscope_plan::Plan;
use shardscope_topology::{GroupKind, Groups, notation};

/// Groups of one kind that are listed; beyond these they are only counted.
const LISTED: usize = 64;

/// Kinds listed, with their titles; those of one rank are left out.
const KINDS: [(GroupKind, &str); 8] = [
    (GroupKind::Pipeline, "Pipeline parallel groups"),
    (GroupKind::Data, "Data parallel groups"),
    (GroupKind::Tensor, "Tensor parallel groups"),
    (GroupKind::Context, "Context parallel groups"),
    (GroupKind::DataContext, "Data and context parallel groups"),
    (GroupKind::Expert, "Expert parallel groups"),
    (GroupKind::ExpertData, "Expert data parallel groups"),
    (GroupKind::Embedding, "Embedding groups"),
];

pub(super) fn write(sheet: &mut Sheet, plan: &Plan) {
    let groups = Groups::new(plan.layout());
    for &(kind, title) in &KINDS {
        let size = groups.size(kind);
        // With CP 1 both kinds are the same groups.
        if size < 2 || kind == GroupKind::DataContext && size == groups.size(GroupKind::Data) {
            continue;
        }
        let count = groups.count(kind);
        sheet.heading(&format!("{count} {title}"));
        let gpus_per_node = plan.cluster().gpus_per_node;
        let mut listed = Vec::new();
        for group in groups.all(kind).take(LISTED) {
            listed.push(notation(group.ranks(), gpus_per_node));
        }
        sheet.items(&listed);
        // Only count from here on: a cluster of 16,384 GPUs would print thousands of lines.
        if count > LISTED as u64 {
            sheet.line(&format!("  and {} more", count - LISTED as u64));
        }
    }
}
