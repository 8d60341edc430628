//! Terms that the reader may ask about where they stand: pressing one opens the card with its meaning.

use shardscope::explain::{anchor, meaning};

use super::{Tag, button, group, tag};
use crate::app::act::{Act, Why};
use crate::app::desk::Desk;
use crate::app::words;

/// `shown` as a button that tells what `name` means; bare where the glossary does not have it.
#[inline(never)]
fn term(desk: &Desk, shown: &str, name: &str) -> Tag {
    let Some(meaning) = meaning(name) else { return group().say(shown.to_owned()) };
    button(desk, "button.term", Act::Explain(Why::Term(name.to_owned())))
        .set("popovertarget", "why")
        .set("aria-haspopup", "dialog")
        .set("title", meaning)
        .say(shown.to_owned())
}

/// A name that the engine gives to something, as the term that explains it.
pub(crate) fn named(desk: &Desk, name: &str) -> Tag {
    let other = words::NAMED.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    term(desk, name, other.unwrap_or(name))
}

/// What the card says of a term.
pub(crate) fn explained(name: &str) -> Tag {
    let more = tag("a")
        .attr("href", ["guide.html#term-", &anchor(name)].concat())
        .set("target", "_blank")
        .set("rel", "noopener")
        .text(words::page::MORE);
    group().with("p", meaning(name).unwrap_or_default()).child(tag("p.small").child(more))
}

impl Tag {
    /// Words in it, with terms among them: `[term]`, or `[as it is written|term]`.
    #[inline(never)]
    pub(crate) fn told(mut self, desk: &Desk, words: &str) -> Self {
        let mut rest = words;
        while let Some((before, behind)) = rest.split_once('[') {
            let (marked, after) = behind.split_once(']').unwrap_or((behind, ""));
            let (shown, name) = marked.split_once('|').unwrap_or((marked, marked));
            self = self.say(before.to_owned()).child(term(desk, shown, name));
            rest = after;
        }
        self.say(rest.to_owned())
    }
}
