//! A number that says why: pressing it opens the tree of what it is made of, with formulas and sources. The card in which
//! it does tells of terms too.

use super::term::explained;
use super::{Sign, Tag, button, tag, tree};
use crate::app::act::{Act, Why};
use crate::app::desk::{Desk, Told};
use crate::app::words::{self, fill};

/// `text` as a button that opens the card; what is in it is worked out only then.
pub(crate) fn number(desk: &Desk, text: String, why: Why) -> Tag {
    button(desk, "button.number-button", Act::Explain(why)).set("popovertarget", "why").say(text)
}

/// The one card in which numbers and terms are explained.
pub(crate) fn card(desk: &Desk) -> Tag {
    let card =
        tag("div.why#why").set("popover", "auto").set("role", "dialog").set("aria-labelledby", "why-title");
    let (title, inside) = match desk.look.told.as_deref() {
        Some(Told::Number(branch)) => {
            (fill(words::verdict::PIECE, [branch.label.clone(), branch.value.clone()]), tree(branch, 1))
        }
        Some(Told::Term(name)) => (name.clone(), explained(name)),
        None => return card,
    };
    let close = tag("button.button quiet")
        .set("type", "button")
        .set("popovertarget", "why")
        .set("popovertargetaction", "hide")
        .set("aria-label", words::page::CLOSE)
        .child(Sign::Close.icon());
    let head = tag("div.why-head").saying("h2#why-title", title).child(close);
    card.child(head).child(inside)
}
