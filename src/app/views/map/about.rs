//! Everything about the picked GPU.

use shardscope::session::Event;
use shardscope::session::map::{About, Relation};
use shardscope::topology::Link;

use crate::app::act::Act;
use crate::app::desk::Desk;
use crate::app::parts::{Tag, button, tag};

/// The panel about the picked GPU.
pub(crate) fn about_gpu(desk: &Desk, about: &About, memory: String) -> Tag {
    let head = tag("header")
        .saying("h3.mono", about.label.clone())
        .saying("span.soft", format!("rank {}", about.rank.get()))
        .child(button(desk, "button.button quiet", Act::Do(Event::Pick(None))).text("Clear"));
    let fact = |name: String, value: String| tag("div").saying("dt", name).saying("dd", value);
    let mut facts = tag("dl.facts").child(fact("Pipeline stage".to_owned(), about.stage.to_string()));
    for (chunk, text) in about.holds.iter().enumerate() {
        let name = if about.holds.len() > 1 { format!("Holds, chunk {chunk}") } else { "Holds".to_owned() };
        facts = facts.child(fact(name, text.clone()));
    }
    let facts = facts.child(fact("Memory at the peak".to_owned(), memory));
    let alone = about.relations.is_empty();
    tag("aside.about-gpu")
        .set("aria-label", "The picked GPU")
        .child(head)
        .child(facts)
        .child(tag("ul.relations").each(&about.relations, relation))
        .maybe(alone.then(|| tag("p.soft small").text("It works alone: every parallel size is 1.")))
}

fn relation(relation: &Relation) -> Tag {
    let link = match relation.link {
        Link::Network => "over the network",
        Link::Node => "inside the node, beyond NVLink",
        Link::Fast => "over NVLink",
        Link::Alone => "alone",
    };
    let line =
        format!("group {} of {}, {} GPUs, {link}", relation.index, relation.of, relation.members.len());
    let dot = tag("span").attr("class", format!("dot {}", relation.kind.short())).set("aria-hidden", "true");
    tag("li")
        .child(tag("p.relation-name").child(dot).with("strong", relation.name))
        .saying("p.soft small", line)
        .saying("p.mono members", relation.written.clone())
}
