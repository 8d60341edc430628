//! The buttons beside the name of the page.

use shardscope::session::Event;

use super::act::Act;
use super::desk::{Desk, Sheet};
use super::parts::{Sign, Tag, button, group, tag};

/// Start, undo, redo, pin, share.
pub(crate) fn toolbar(desk: &Desk) -> Tag {
    let state = &desk.state;
    let step = |sign: Sign, (title, label): (&'static str, &'static str), event: Event, can: bool| {
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
        .set("title", "Hold this plan and see the next one beside it")
        .child(Sign::Pin.icon())
        .with("span.wide-only", "Pin");
    let sheet = |shape: &'static str, sign: Sign, sheet: Sheet| {
        button(desk, shape, Act::Open(sheet)).child(sign.icon())
    };
    tag("div.toolbar")
        .set("role", "toolbar")
        .set("aria-label", "Plan")
        .child(sheet("button.button", Sign::Grid, Sheet::Gallery).text("Start from…"))
        .child(step(Sign::Undo, ("Undo (Ctrl+Z)", "Undo"), Event::Undo, state.steps.can_undo()))
        .child(step(Sign::Redo, ("Redo (Ctrl+Shift+Z)", "Redo"), Event::Redo, state.steps.can_redo()))
        .child(pin)
        .child(sheet("button.button main", Sign::Share, Sheet::Share).text("Share"))
}

/// Why a link could not be opened.
pub(crate) fn broken_link(desk: &Desk) -> Tag {
    let Some(error) = &desk.state.broken_link else { return group() };
    let close = button(desk, "button.button quiet", Act::Do(Event::Dismiss))
        .set("aria-label", "Dismiss")
        .child(Sign::Close.icon());
    tag("div.broken-link")
        .set("role", "alert")
        .child(Sign::Tight.icon())
        .saying("p", format!("The link could not be opened: {}. What you had is still here.", error.0))
        .child(close)
}
