//! What of the map does not change when a GPU is picked.

use shardscope::session::map::{Area, Caption, Detail};

use crate::app::desk::Desk;
use crate::app::parts::{Tag, group, tag};
use crate::app::words::{digits, fill};

/// The nodes and the coloured cells.
pub(crate) fn cells(desk: &Desk) -> Tag {
    let Some(picture) = &desk.look.map.picture else { return group() };
    let hue = if picture.ramp { "r" } else { "c" };
    let rounded = picture.geometry.detail() >= Detail::Number;
    tag(if rounded { "g.rounded" } else { "g" }).set("aria-hidden", "true").each(&picture.nodes, node).each(
        &picture.fills,
        |(class, path)| {
            tag("path")
                .attr("class", fill("cell {0}{1}", [hue.to_owned(), digits((*class).into())]))
                .attr("d", path.clone())
        },
    )
}

/// The texts in the cells, above everything drawn between.
pub(crate) fn captions(desk: &Desk) -> Tag {
    let Some(picture) = &desk.look.map.picture else { return group() };
    tag("g.captions").set("aria-hidden", "true").each(&picture.captions, caption)
}

/// A text at a place.
pub(crate) fn label(shape: &'static str, (x, y): (u32, u32), text: String) -> Tag {
    tag(shape).counts(&["x", "y"], &[x, y]).say(text)
}

/// A rectangle in the place of `area`.
pub(crate) fn over(rect: Tag, area: Area) -> Tag {
    rect.counts(&["x", "y", "width", "height"], &[area.x, area.y, area.width, area.height])
}

fn node((area, name): &(Area, String)) -> Tag {
    group().child(over(tag("rect.node").set("rx", "6"), *area)).child(label(
        "text.node-name",
        (area.x + 8, area.y + 17),
        name.clone(),
    ))
}

fn caption(caption: &Caption) -> Tag {
    let (x, y) = caption.area.middle();
    let value = |y: u32| label("text.cell-value", (x, y), caption.value.clone());
    match &caption.label {
        Some(above) => {
            group().child(label("text.cell-label", (x, y - 3), above.clone())).child(value(y + 13))
        }
        None => value(y + 4),
    }
}
