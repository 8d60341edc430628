//! A number that says why: pressing it opens the tree of what it is made of, with formulas and sources.

use super::{Sign, Tag, button, tag, tree};
use crate::app::act::{Act, Why};
use crate::app::desk::Desk;
use crate::app::words::{self, fill};

/// `text` as a button that opens the card; what is in it is worked out only then.
pub(crate) fn number(desk: &Desk, text: String, why: Why) -> Tag {
    button(desk, "button.number-button", Act::Explain(why)).set("popovertarget", "why").say(text)
}

/// The one card in which numbers are explained.
pub(crate) fn card(desk: &Desk) -> Tag {
    let card =
        tag("div.why#why").set("popover", "auto").set("role", "dialog").set("aria-labelledby", "why-title");
    let Some(branch) = &desk.look.told else { return card };
    let close = tag("button.button quiet")
        .set("type", "button")
        .set("popovertarget", "why")
        .set("popovertargetaction", "hide")
        .set("aria-label", words::page::CLOSE)
        .child(Sign::Close.icon());
    let head = tag("div.why-head")
        .saying("h2#why-title", fill(words::verdict::PIECE, [branch.label.clone(), branch.value.clone()]))
        .child(close);
    card.child(head).child(tree(branch, 1))
}
