//! What views begin with.

use super::{Tag, tag};
use crate::app::act::Act;
use crate::app::desk::Desk;
use crate::app::words::Panel;

/// A part of the page under a heading, which names it: `shape` says element and id, `title_id` the heading's.
#[inline(never)]
pub(crate) fn headed(shape: &'static str, title_id: &'static str) -> Tag {
    tag(shape).set("aria-labelledby", title_id)
}

/// A panel with its name and a sentence about it.
#[inline(never)]
pub(crate) fn section(desk: &Desk, shape: &'static str, title_id: &'static str, words: &Panel) -> Tag {
    let title = tag("h2").set("id", title_id).text(words.title);
    headed(shape, title_id).child(tag("header").child(title).child(tag("p").told(desk, words.about)))
}

/// A button that does `act`.
#[inline(never)]
pub(crate) fn button(desk: &Desk, shape: &'static str, act: Act) -> Tag {
    tag(shape).set("type", "button").press(desk, act)
}

/// Something that opens, with `summary` as its head.
#[inline(never)]
pub(crate) fn details(shape: &'static str, open: bool, summary: Tag) -> Tag {
    tag(shape).flag("open", open).child(summary)
}
