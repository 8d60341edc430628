//! The map as it is drawn: shapes, captions, legend.

use super::{Amounts, Area, Colour, Detail, Geometry, NOTHING, Paint, Swatch, paint};
use shardscope_plan::Plan;
use shardscope_topology::{Groups, Rank};
use shardscope_units::size;

/// Everything drawn that does not depend on which GPU is picked.
#[derive(Clone, Debug, PartialEq)]
pub struct Picture {
    /// Where the cells lie.
    pub geometry: Geometry,
    /// One path per colour: around all its cells.
    pub fills: Vec<(u8, String)>,
    /// The nodes with their names, where there is room for them.
    pub nodes: Vec<(Area, String)>,
    /// The cells' texts, where there is room for them.
    pub captions: Vec<Caption>,
    /// What the colours mean.
    pub legend: Vec<Swatch>,
    /// Whether the colours are an order of amounts instead of names.
    pub ramp: bool,
}

/// The text in one cell.
#[derive(Clone, Debug, PartialEq)]
pub struct Caption {
    /// The cell.
    pub area: Area,
    /// The label, where there is room for two lines.
    pub label: Option<String>,
    /// What the colour tells, in characters.
    pub value: String,
}

/// The map of `plan`, `width` wide.
#[must_use]
pub fn picture(plan: &Plan, colour: Colour, amounts: &Amounts, width: u32) -> Picture {
    let geometry = Geometry::fit(plan.layout().world_size, plan.cluster().gpus_per_node, width);
    let Paint { classes, legend, ramp } = paint(plan, colour, amounts);
    let detail = geometry.detail();
    let mut captions = Vec::new();
    let mut nodes = Vec::new();
    if detail >= Detail::Number {
        let per_node = geometry.per_node();
        captions = (0..geometry.gpus())
            .map(|gpu| Caption {
                area: geometry.cell(gpu),
                label: (detail == Detail::Words).then(|| Rank::new(gpu).label(per_node)),
                value: value(plan, colour, amounts, Rank::new(gpu), detail),
            })
            .collect();
        nodes = (0..geometry.nodes()).map(|node| (geometry.node(node), format!("n{node}"))).collect();
    }
    Picture { fills: fills(&geometry, &classes), geometry, nodes, captions, legend, ramp }
}

fn fills(geometry: &Geometry, classes: &[u8]) -> Vec<(u8, String)> {
    let of_class = |class: u8| {
        let mut ranks =
            (0_u64..).zip(classes).filter(move |(_, other)| **other == class).map(|(rank, _)| rank);
        (class, geometry.path(&mut ranks))
    };
    (0..=NOTHING).map(of_class).filter(|(_, path)| !path.is_empty()).collect()
}

fn value(plan: &Plan, colour: Colour, amounts: &Amounts, rank: Rank, detail: Detail) -> String {
    let groups = Groups::of(plan.layout());
    let wordy = detail == Detail::Words;
    match colour {
        Colour::Stage => {
            let stage = groups.coordinates(rank).pipeline;
            if wordy { format!("stage {stage}") } else { stage.to_string() }
        }
        Colour::Group(kind) => match groups.group(kind, rank) {
            Some(group) if wordy => format!("group {}", group.index()),
            Some(group) => group.index().to_string(),
            None => "–".to_owned(),
        },
        Colour::Memory | Colour::Traffic if wordy => {
            amounts.of(colour, groups.coordinates(rank).pipeline).map_or_else(String::new, size)
        }
        Colour::Memory | Colour::Traffic => String::new(),
    }
}
