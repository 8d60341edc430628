//! The map as it is drawn: shapes, captions, legend.

use std::ops::Range;

use super::{Amounts, Area, Colour, Detail, Geometry, NOTHING, Paint, Swatch, paint};
use shardscope_plan::Plan;
use shardscope_topology::{Groups, Rank};
use shardscope_units::size;

/// The parts of the map that do not depend on which GPU is picked, except for the cells, which come as [`Tile`]s.
#[derive(Clone, Debug, PartialEq)]
pub struct Picture {
    /// Layout of the cells.
    pub geometry: Geometry,
    /// The GPUs that are drawn.
    pub gpus: Range<u64>,
    /// The rows of nodes with their labels on the left, if there is room.
    pub rows: Vec<Row>,
    /// Lines between racks, if fast links join several nodes.
    pub racks: String,
    /// Colours with their meanings.
    pub legend: Vec<Swatch>,
    /// Whether the colours are a scale of amounts rather than names.
    pub ramp: bool,
}

/// Some rows of nodes, drawn together and kept while the map is scrolled.
#[derive(Clone, Debug, PartialEq)]
pub struct Tile {
    /// One path per colour: around all its cells.
    pub fills: Vec<(u8, String)>,
    /// The nodes with their names, if there is room for them.
    pub nodes: Vec<(Area, String)>,
    /// The cells' texts, if there is room for them.
    pub captions: Vec<Caption>,
}

/// The labels left of a row of nodes.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The first node of the row.
    pub area: Area,
    /// Its name; `None` if nodes are named in the picture.
    pub name: Option<String>,
    /// The pipeline stages of the row's GPUs, if it is the first with these stages, and how far down they extend.
    pub stages: Option<(String, u32)>,
}

/// The text in one cell.
#[derive(Clone, Debug, PartialEq)]
pub struct Caption {
    /// The cell.
    pub area: Area,
    /// The label, if there is room for two lines.
    pub label: Option<String>,
    /// The meaning of the colour, as text.
    pub value: String,
}

/// The map of `plan` at the places of `geometry`, limited to the visible `nodes`.
#[must_use]
pub fn picture_of(
    plan: &Plan,
    colour: Colour,
    amounts: &Amounts,
    geometry: Geometry,
    nodes: &Range<u64>,
) -> Picture {
    // No GPU is requested: the legend does not depend on which are drawn, and the cells come as tiles.
    let Paint { legend, ramp, .. } = paint(plan, colour, amounts, &mut std::iter::empty());
    Picture {
        gpus: geometry.gpus_of(nodes),
        rows: rows(plan, &geometry, nodes),
        racks: geometry.between_racks(per_rack(plan), nodes),
        geometry,
        legend,
        ramp,
    }
}

/// The cells of `nodes`.
#[must_use]
pub fn tile(plan: &Plan, colour: Colour, amounts: &Amounts, geometry: &Geometry, nodes: &Range<u64>) -> Tile {
    let (gpus, per_node, detail) = (geometry.gpus_of(nodes), geometry.per_node(), geometry.detail());
    let classes = paint(plan, colour, amounts, &mut gpus.clone()).classes;
    let mut tile =
        Tile { fills: fills(geometry, gpus.start, &classes), nodes: Vec::new(), captions: Vec::new() };
    // Below that level there is no room for any text, and making it for 200,000 cells would take most of the time.
    if detail >= Detail::Number {
        let caption = |gpu| Caption {
            area: geometry.cell(gpu),
            label: (detail == Detail::Words).then(|| Rank::new(gpu).label(per_node)),
            value: value(plan, colour, amounts, Rank::new(gpu), detail),
        };
        tile.captions = gpus.map(caption).collect();
        tile.nodes = nodes.clone().map(|node| (geometry.node(node), format!("n{node}"))).collect();
    }
    tile
}

/// A miniature of the cluster: `columns` by `rows` points, each in the colour of the GPU there. One path per colour,
/// in which a point is one unit wide and high.
#[must_use]
pub fn overview(
    plan: &Plan,
    colour: Colour,
    amounts: &Amounts,
    geometry: &Geometry,
    (columns, rows): (u64, u64),
) -> Vec<(u8, String)> {
    // Sampled, not averaged: a point has the colour of one GPU, so that no colour appears that is not in the map.
    let points = (0..columns * rows).map(|point| (point / columns, point % columns));
    let mut gpus = points.clone().map(|(row, column)| geometry.at_share((row, rows), (column, columns)));
    let classes = paint(plan, colour, amounts, &mut gpus).classes;
    let of_class = |class: u8| {
        let mut path = String::new();
        for ((row, column), _) in points.clone().zip(&classes).filter(|(_, other)| **other == class) {
            path += &format!("M{column} {row}h1v1h-1z");
        }
        (class, path)
    };
    // `NOTHING` is the last class, so this goes over all of them.
    (0..=NOTHING).map(of_class).filter(|(_, path)| !path.is_empty()).collect()
}

/// Nodes that fast links join into a rack, 18 in an NVL72; 1 if fast links end at the node.
#[must_use]
pub fn per_rack(plan: &Plan) -> u64 {
    let cluster = plan.cluster();
    // `fast_domain` counts accelerators; below a node's size (A100 pairs over PCIe) it joins no nodes.
    (cluster.fast_domain / cluster.gpus_per_node.max(1)).max(1)
}

/// The label left of a row that begins with `node`: the rack if one begins there, otherwise the node if it has no
/// name in the picture.
fn row_name(plan: &Plan, node: u64, named: bool) -> Option<String> {
    let per_rack = per_rack(plan);
    match (per_rack > 1 && node.is_multiple_of(per_rack), named) {
        (true, _) => Some(format!("rack {}", node / per_rack)),
        (false, true) => None,
        (false, false) => Some(format!("n{node}")),
    }
}

/// The labels left of the rows of `nodes`; empty if there is no room.
fn rows(plan: &Plan, geometry: &Geometry, nodes: &Range<u64>) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    if geometry.gutter() == 0 {
        return rows;
    }
    let groups = Groups::new(plan.layout());
    let staged = plan.layout().pipeline > 1;
    let (across, per_node) = (geometry.across().max(1), geometry.per_node());
    let mut last = None;
    let mut first = nodes.start;
    while first < nodes.end {
        let area = geometry.node(first);
        let gpus = first * per_node..((first + across) * per_node).min(geometry.gpus());
        let span = gpus.fold((u64::MAX, 0), |(least, most): (u64, u64), gpu| {
            let stage = groups.coordinates(Rank::new(gpu)).pipeline;
            (least.min(stage), most.max(stage))
        });
        let name = row_name(plan, first, geometry.detail() >= Detail::Number);
        let bottom = area.y + area.height;
        // Equal stages in consecutive rows are labelled once, next to the first, with a bracket down to the last.
        let fresh = last != Some(span);
        // Not necessarily the previous row: rows in between have no label.
        if !fresh && let Some((_, end)) = rows.iter_mut().rev().find_map(|row| row.stages.as_mut()) {
            *end = bottom;
        }
        let words =
            if span.0 == span.1 { format!("PP {}", span.0) } else { format!("PP {}–{}", span.0, span.1) };
        rows.push(Row { area, name, stages: (staged && fresh).then_some((words, bottom)) });
        last = Some(span);
        first += across;
    }
    rows
}

fn fills(geometry: &Geometry, first: u64, classes: &[u8]) -> Vec<(u8, String)> {
    let of_class = |class: u8| {
        let mut ranks =
            (first..).zip(classes).filter(move |(_, other)| **other == class).map(|(rank, _)| rank);
        (class, geometry.path(&mut ranks))
    };
    (0..=NOTHING).map(of_class).filter(|(_, path)| !path.is_empty()).collect()
}

fn value(plan: &Plan, colour: Colour, amounts: &Amounts, rank: Rank, detail: Detail) -> String {
    let groups = Groups::new(plan.layout());
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
        // Bytes change too little from cell to cell to be worth a number in a small cell; the colour shows it there.
        Colour::Memory | Colour::Traffic if wordy => {
            amounts.at(colour, groups.coordinates(rank).pipeline).map_or_else(String::new, size)
        }
        Colour::Memory | Colour::Traffic => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::State;

    #[test]
    fn in_little_the_cluster_has_the_colours_of_its_parts() {
        let shown = State::default().shown.expect("a plan");
        let (plan, amounts) = (&shown.plan, Amounts::default());
        // 16 GPUs, two stages of 8: a row of points each.
        let geometry = Geometry::fit(16, 8, 700);
        let small = |points| overview(plan, Colour::Stage, &amounts, &geometry, points);
        assert_eq!(small((1, 2)), [(0, "M0 0h1v1h-1z".to_owned()), (1, "M0 1h1v1h-1z".to_owned())]);
        // More points than there are GPUs: each has several.
        let points = small((32, 64));
        assert_eq!(points.iter().map(|(_, path)| path.matches('M').count()).sum::<usize>(), 32 * 64);
    }

    #[test]
    fn the_tiles_of_a_map_hold_every_cell_once() {
        let shown = State::default().shown.expect("a plan");
        let plan = &shown.plan;
        let amounts = Amounts::default();
        for closer in 0..2 {
            let geometry = Geometry::fit_closer(16, 8, 700, closer);
            let whole = tile(plan, Colour::Stage, &amounts, &geometry, &(0..2));
            let mut captions = Vec::new();
            let mut cells = 0;
            for nodes in geometry.tiles(&(0..2), 1) {
                let part = tile(plan, Colour::Stage, &amounts, &geometry, &nodes);
                cells += part.fills.iter().map(|(_, path)| path.matches('M').count()).sum::<usize>();
                captions.extend(part.captions);
            }
            assert_eq!((cells, captions), (16, whole.captions));
        }
    }
}
