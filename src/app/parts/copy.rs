//! Text to be copied. Where the clipboard is refused, that is said, and a field that shows the text is selected.

use super::{Sign, Tag, button, tag};
use crate::app::act::{Act, Copied};
use crate::app::desk::Desk;
use crate::app::words::copy as words;

/// Whether what is behind a button was copied a moment ago.
fn said(desk: &Desk, copied: Copied) -> Option<bool> {
    desk.look.copied.filter(|(last, _)| *last == copied).map(|(_, done)| done)
}

/// A button that copies what is worked out only when it is pressed.
pub(crate) fn copy(desk: &Desk, copied: Copied, label: &'static str) -> Tag {
    let label = match said(desk, copied) {
        Some(true) => words::DONE,
        Some(false) => words::REFUSED,
        None => label,
    };
    button(desk, "button.button quiet", Act::Copy(copied))
        .child(Sign::Copy.icon())
        .child(tag("span").set("aria-live", "polite").text(label))
}

/// A field called `id` that shows `text` whole in so many `lines`, and a button.
pub(crate) fn copyable(
    desk: &Desk,
    id: &'static str,
    label: &'static str,
    (text, lines): (String, u64),
) -> Tag {
    let copied = Copied::Field(id);
    let done = said(desk, copied);
    let told = match done {
        Some(true) => words::DONE,
        Some(false) => words::SELECTED,
        None => "",
    };
    let field = tag("textarea.field mono")
        .set("id", id)
        .flag("readonly", true)
        .count("rows", lines)
        .set("wrap", if lines > 1 { "soft" } else { "off" })
        .set("spellcheck", "false")
        .set("aria-label", label)
        .attr("value", text);
    let sign = if done == Some(true) { Sign::Good } else { Sign::Copy };
    tag("div.copyable")
        .child(field)
        .child(button(desk, "button.button", Act::Copy(copied)).child(sign.icon()).text(label))
        .child(tag("span.said small").set("role", "status").text(told))
}
