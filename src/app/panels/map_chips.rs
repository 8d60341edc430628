//! What the colours of the map can show, as chips.

use shardscope::session::Shown;
use shardscope::session::map::{Colour, relation_name, relations};
use shardscope::topology::GroupKind;

/// One thing that colours can show.
pub(super) struct Chip {
    pub colour: Colour,
    pub name: &'static str,
    pub title: String,
}

/// What there is to choose from: stages, the groups of the plan, amounts.
pub(super) fn chips(shown: &Shown) -> Vec<Chip> {
    let mut chips =
        vec![Chip { colour: Colour::Stage, name: "Stage", title: "Color by pipeline stage".to_owned() }];
    for kind in relations(&shown.plan) {
        let name = match kind {
            GroupKind::Tensor => "TP",
            GroupKind::Pipeline => "PP",
            GroupKind::Data => "DP",
            GroupKind::DataContext => "DP + CP",
            GroupKind::Context => "CP",
            GroupKind::Expert => "EP",
            GroupKind::ExpertTensor => "ETP",
            GroupKind::ExpertData => "EDP",
            GroupKind::Embedding => "Embedding",
            other => other.short(),
        };
        chips.push(Chip {
            colour: Colour::Group(kind),
            name,
            title: format!("Color by {} group", relation_name(kind)),
        });
    }
    chips.push(Chip { colour: Colour::Memory, name: "Memory", title: "Color by peak memory".to_owned() });
    chips.push(Chip {
        colour: Colour::Traffic,
        name: "Traffic",
        title: "Color by bytes sent per step".to_owned(),
    });
    chips
}
