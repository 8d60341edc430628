//! The one cell of the map that takes the focus, as a grid whose other cells are not there: arrows move it.

use shardscope::session::Shown;
use shardscope::session::map::{About, Geometry, Step, about};
use shardscope::topology::Rank;

use super::cells::over;
use crate::app::act::Act;
use crate::app::desk::Desk;
use crate::app::parts::{Tag, tag};
use crate::app::words::{digits, fill, map as words};

const ARROWS: [(&str, Step); 4] = [
    ("ArrowLeft", Step::Left),
    ("ArrowRight", Step::Right),
    ("ArrowUp", Step::Up),
    ("ArrowDown", Step::Down),
];

/// Whether `key` moves the cursor, or picks the GPU under it.
pub(crate) fn is_move(key: &str) -> bool {
    matches!(key, "Home" | "End" | "Enter" | " ") || ARROWS.iter().any(|(arrow, _)| *arrow == key)
}

/// Where the cursor is on a plan of fewer GPUs than the last.
pub(crate) fn place(desk: &Desk, shown: &Shown) -> u64 {
    desk.look.map.cursor.min(shown.plan.layout().world_size.saturating_sub(1))
}

/// Where `key` leads from the cursor, with Ctrl or Cmd over the `whole` map.
pub(crate) fn moved(desk: &Desk, key: &str, whole: bool) -> Option<u64> {
    let at = place(desk, desk.state.shown.as_ref()?);
    let step = match (key, whole) {
        ("Home", true) => Step::First,
        ("End", true) => Step::Last,
        ("Home", false) => Step::RowStart,
        ("End", false) => Step::RowEnd,
        _ => match ARROWS.iter().find(|(arrow, _)| *arrow == key) {
            Some((_, step)) => *step,
            None => return Some(at),
        },
    };
    Some(desk.look.map.picture.as_ref()?.geometry.step(at, step))
}

pub(crate) fn cursor(desk: &Desk, shown: &Shown, geometry: &Geometry) -> Tag {
    let at = place(desk, shown);
    let area = geometry.cell(at);
    let (row, column) = geometry.row_and_column(at);
    let label = about(&shown.plan, Rank::new(at)).as_ref().map(spoken).unwrap_or_default();
    let cell = tag("rect.cursor")
        .key(at.to_string())
        .set("role", "gridcell")
        .set("tabindex", "0")
        .count("aria-colindex", column + 1)
        .attr("aria-label", label)
        .says("aria-selected", desk.state.picked == Some(Rank::new(at)))
        .set("rx", if area.width > 20 { "4" } else { "1" })
        .on(desk, "keydown", Act::Move);
    tag("g").set("role", "row").count("aria-rowindex", row + 1).child(over(cell, area))
}

/// What a screen reader says of a GPU.
fn spoken(about: &About) -> String {
    let mut text = fill(words::SPOKEN, [about.label.clone(), digits(about.rank.get()), digits(about.stage)]);
    for relation in &about.relations {
        let group = [relation.name.to_owned(), digits(relation.index)];
        text.push_str(&fill(words::SPOKEN_GROUP, group));
    }
    text
}
