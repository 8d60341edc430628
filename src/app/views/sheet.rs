//! A sheet over the page; closed by Escape, by its button and by pressing beside it.

use super::gallery::gallery;
use super::share::share;
use crate::app::act::Act;
use crate::app::desk::{Desk, Sheet};
use crate::app::parts::{Sign, Tag, button, group, headed, tag};
use crate::app::words;

/// The one that lies there, if any.
pub(crate) fn sheet(desk: &Desk) -> Tag {
    match desk.look.sheet {
        None => group(),
        Some(Sheet::Gallery) => gallery(desk),
        Some(Sheet::Share) => share(desk),
    }
}

/// The sheet called `title`.
pub(crate) fn dialog(
    desk: &Desk,
    id: &'static str,
    (title_id, title): (&'static str, &'static str),
    inside: Tag,
) -> Tag {
    let head = tag("header").child(tag("h2").set("id", title_id).text(title)).child(
        button(desk, "button.button quiet", Act::Close)
            .set("aria-label", words::page::CLOSE)
            .child(Sign::Close.icon()),
    );
    headed("dialog.sheet-dialog", title_id)
        .set("id", id)
        .press(desk, Act::Beside)
        .on(desk, "close", Act::Closed)
        .child(tag("div.dialog-body").child(head).child(inside))
}
