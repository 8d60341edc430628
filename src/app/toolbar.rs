//! The buttons beside the name of the page.

use shardscope::session::Event;

use super::act::Act;
use super::desk::{Desk, Sheet};
use super::parts::{Sign, Tag, button, group, tag};
use super::words::{fill, toolbar as words};

/// Start, undo, redo, pin, share.
pub(crate) fn toolbar(desk: &Desk) -> Tag {
    let state = &desk.state;
    let step = |sign: Sign, [label, title]: [&'static str; 2], event: Event, can: bool| {
        button(desk, "button.button only-icon", Act::Do(event))
            .set("title", title)
            .set("aria-label", label)
            .flag("disabled", !can)
            .child(sign.icon())
    };
    let pinned = state.pinned.is_some();
    let pin = button(desk, "button.button", Act::Do(if pinned { Event::Unpin } else { Event::Pin }))
        .says("aria-pressed", pinned)
        .flag("disabled", state.shown.is_none())
        .set("title", words::PIN[1])
        .child(Sign::Pin.icon())
        .with("span.wide-only", words::PIN[0]);
    let sheet = |shape: &'static str, sign: Sign, sheet: Sheet| {
        button(desk, shape, Act::Open(sheet)).child(sign.icon())
    };
    tag("div.toolbar")
        .set("role", "toolbar")
        .set("aria-label", words::NAME)
        .child(sheet("button.button", Sign::Grid, Sheet::Gallery).text(words::START))
        .child(step(Sign::Undo, words::UNDO, Event::Undo, state.steps.can_undo()))
        .child(step(Sign::Redo, words::REDO, Event::Redo, state.steps.can_redo()))
        .child(pin)
        .child(sheet("button.button main", Sign::Share, Sheet::Share).text(words::SHARE))
}

/// Why a link could not be opened.
pub(crate) fn broken_link(desk: &Desk) -> Tag {
    let Some(error) = &desk.state.broken_link else { return group() };
    let close = button(desk, "button.button quiet", Act::Do(Event::Dismiss))
        .set("aria-label", words::DISMISS)
        .child(Sign::Close.icon());
    tag("div.broken-link")
        .set("role", "alert")
        .child(Sign::Tight.icon())
        .saying("p", fill(words::BROKEN, [error.0.to_string()]))
        .child(close)
}
