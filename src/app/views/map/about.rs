//! Everything about the picked GPU.

use shardscope::session::Event;
use shardscope::session::map::{About, Relation};
use shardscope::topology::Link;

use crate::app::act::Act;
use crate::app::desk::Desk;
use crate::app::parts::{Tag, button, named, tag};
use crate::app::words::{digits, fill, map as words, numbered};

/// The panel about the picked GPU.
pub(crate) fn about_gpu(desk: &Desk, about: &About, memory: String) -> Tag {
    let head = tag("header")
        .saying("h3.mono", about.label.clone())
        .saying("span.soft", numbered(words::RANK, &[about.rank.get()]))
        .child(button(desk, "button.button quiet", Act::Do(Event::Pick(None))).text(words::CLEAR));
    let fact = |name: String, value: String| tag("div").saying("dt", name).saying("dd", value);
    let mut facts = tag("dl.facts").child(fact(words::STAGE.to_owned(), about.stage.to_string()));
    for (chunk, text) in about.holds.iter().enumerate() {
        let name = if about.holds.len() > 1 { words::CHUNK_HOLDS } else { words::HOLDS };
        facts = facts.child(fact(numbered(name, &[chunk as u64]), text.clone()));
    }
    let facts = facts.child(fact(words::PEAK.to_owned(), memory));
    let alone = about.relations.is_empty();
    tag("aside.about-gpu")
        .set("aria-label", words::PICKED)
        .child(head)
        .child(facts)
        .child(tag("ul.relations").each(&about.relations, |one| relation(desk, one)))
        .maybe(alone.then(|| tag("p.soft small").text(words::ALONE)))
}

fn relation(desk: &Desk, relation: &Relation) -> Tag {
    let link = match relation.link {
        Link::Network => words::NETWORK,
        Link::Node => words::NODE,
        Link::Fast => words::FAST,
        Link::Alone => words::NO_LINK,
    };
    let line = fill(
        words::GROUP,
        [digits(relation.index), digits(relation.of), digits(relation.members.len() as u64), link.to_owned()],
    );
    let dot = tag("span")
        .attr("class", fill("dot {0}", [relation.kind.short().to_owned()]))
        .set("aria-hidden", "true");
    tag("li")
        .child(tag("p.relation-name").child(dot).child(tag("strong").child(named(desk, relation.name))))
        .saying("p.soft small", line)
        .child(tag("p.mono members").set("tabindex", "0").say(relation.written.clone()))
}
