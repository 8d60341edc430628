//! The parts of the map that do not change when a GPU is picked or hovered.

use std::ops::Range;

use shardscope::session::map::{Amounts, Area, Caption, Colour, Detail, Geometry, Picture, Row, Tile, tile};
use shardscope::session::{PtrEq, Shown};
use yew::prelude::*;

#[derive(Properties, PartialEq)]
pub(super) struct TileProps {
    pub shown: PtrEq<Shown>,
    pub colour: Colour,
    pub geometry: Geometry,
    pub nodes: Range<u64>,
}

impl TileProps {
    fn tile(&self) -> Tile {
        tile(&self.shown.plan, self.colour, &amounts(&self.shown), &self.geometry, &self.nodes)
    }
}

/// Amounts of the GPUs of each stage, for colours that show an amount.
pub(super) fn amounts(shown: &Shown) -> Amounts {
    Amounts {
        // By stage, as the paint looks them up.
        memory: shown.stages.iter().map(|stage| stage.reserved).collect(),
        traffic: shown.report.traffic.stages().iter().map(|stage| stage.wire).collect(),
    }
}

/// The nodes and the coloured cells of some rows. Equal properties cause no redraw, so scrolling only costs what
/// comes into view.
#[component(Cells)]
pub(super) fn cells(props: &TileProps) -> Html {
    let tile = props.tile();
    // Amounts have a separate colour ramp in the style sheet.
    let hue = if matches!(props.colour, Colour::Memory | Colour::Traffic) { "r" } else { "c" };
    let rounded = props.geometry.detail() >= Detail::Number;
    html! {
        <g class={rounded.then_some("rounded")} aria-hidden="true">
            { for tile.nodes.iter().map(node) }
            { for tile.fills.iter().map(|(class, path)| html! {
                <path class={format!("cell {hue}{class}")} d={path.clone()} />
            }) }
        </g>
    }
}

#[derive(Properties, PartialEq)]
pub(super) struct Props {
    pub picture: PtrEq<Picture>,
}

/// The labels left of the rows, and the lines between racks.
#[component(Rows)]
pub(super) fn rows(Props { picture }: &Props) -> Html {
    html! {
        <g aria-hidden="true">
            { for picture.rows.iter().map(row) }
            <path class="bracket" d={picture.racks.clone()} />
        </g>
    }
}

/// Left of a row: the name of its first node, and a bracket around the rows of the same stages.
fn row(row: &Row) -> Html {
    let end = row.area.x;
    let top = row.area.y;
    html! {
        <>
            if let Some(name) = &row.name {
                { label("row-name", (end.saturating_sub(8), top + 10), name) }
            }
            if let Some((stages, bottom)) = &row.stages {
                <path class="bracket" d={format!("M{} {}h-4V{}h4", end.saturating_sub(1), top + 1, bottom.saturating_sub(1))} />
                // A single low row between two stages is explained by its neighbours.
                if row.name.is_none() || bottom - top >= 22 {
                    { label("row-name stages", stages_at(row, stages), stages) }
                }
            }
        </>
    }
}

/// Where the label of a row's stages ends: left of the node's name, so that it does not cross the next node's name.
fn stages_at(row: &Row, stages: &str) -> (u32, u32) {
    /// Longest name that leaves the other one its half of the gutter, and the width of that half. Unit: CSS pixel.
    const SHORT: usize = 5;
    const HALF: u32 = 40;
    let (end, top) = (row.area.x, row.area.y);
    match &row.name {
        None => (end.saturating_sub(8), top + 10),
        Some(name) if name.len().max(stages.len()) <= SHORT => (end.saturating_sub(HALF), top + 10),
        Some(_) => (end.saturating_sub(8), top + 22),
    }
}

fn node((area, name): &(Area, String)) -> Html {
    html! {
        <>
            <rect
                class="node" rx="6"
                x={area.x.to_string()} y={area.y.to_string()}
                width={area.width.to_string()} height={area.height.to_string()}
            />
            { label("node-name", (area.x + 8, area.y + 17), name) }
        </>
    }
}

/// The texts in the cells, above everything drawn between.
#[component(Captions)]
pub(super) fn captions(props: &TileProps) -> Html {
    html! {
        <g class="captions" aria-hidden="true">{ for props.tile().captions.iter().map(caption) }</g>
    }
}

fn caption(caption: &Caption) -> Html {
    let (x, y) = caption.area.middle();
    match &caption.label {
        Some(above) => html! {
            <>
                { label("cell-label", (x, y - 3), above) }
                { label("cell-value", (x, y + 13), &caption.value) }
            </>
        },
        None => label("cell-value", (x, y + 4), &caption.value),
    }
}

/// A text at a place.
pub(super) fn label(class: &'static str, (x, y): (u32, u32), text: &str) -> Html {
    html! { <text {class} x={x.to_string()} y={y.to_string()}>{ text }</text> }
}
