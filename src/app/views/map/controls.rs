//! What the colours tell, and the search for a GPU.

use shardscope::session::Shown;
use shardscope::session::map::{Colour, relation_name, relations};
use shardscope::topology::Rank;

use crate::app::act::Act;
use crate::app::desk::Desk;
use crate::app::parts::{Tag, choose, options, tag};
use crate::app::words::{digits, fill, map as words};

/// What there is to choose from, groups between stages and amounts, each with its name.
fn colours(shown: &Shown) -> Vec<(Colour, String)> {
    let mut colours = vec![(Colour::Stage, words::BY_STAGE.to_owned())];
    for kind in relations(&shown.plan) {
        colours.push((Colour::Group(kind), fill(words::BY_GROUP, [relation_name(kind).to_owned()])));
    }
    colours.push((Colour::Memory, words::BY_MEMORY.to_owned()));
    colours.push((Colour::Traffic, words::BY_TRAFFIC.to_owned()));
    colours
}

/// The colour that is called so; stages where none is.
pub(crate) fn painted(desk: &Desk, wanted: &str) -> Colour {
    let colours = desk.state.shown.as_ref().map(|shown| colours(shown)).unwrap_or_default();
    colours.into_iter().find(|(_, name)| name == wanted).map_or(Colour::Stage, |(colour, _)| colour)
}

pub(crate) fn controls(desk: &Desk, shown: &Shown) -> Tag {
    let colours = colours(shown);
    let chosen = colours.iter().find(|(colour, _)| *colour == desk.state.colour);
    let chosen = chosen.map(|(_, name)| name.as_str()).unwrap_or_default();
    let list = choose().on(desk, "change", Act::Paint);
    let list = options(list, &mut colours.iter().map(|(_, name)| name.as_str()), chosen);
    let unknown = desk.look.map.unknown;
    let field = tag("input.field")
        .set("name", "gpu")
        .set("size", "9")
        .set("placeholder", "n0_g0")
        .set("autocomplete", "off")
        .set("spellcheck", "false")
        .says("aria-invalid", unknown)
        .set("aria-describedby", "unknown-gpu");
    let form = tag("form")
        .on(desk, "submit", Act::Find)
        .set("role", "search")
        .set("aria-label", words::SEARCH)
        .child(tag("label").text(words::FIND).child(field))
        .child(tag("button.button").set("type", "submit").text(words::SHOW));
    let mut said = tag("p.small soft#unknown-gpu").set("role", "status");
    if unknown {
        let last = shown.plan.layout().world_size.saturating_sub(1);
        let label = Rank::new(last).label(shown.plan.cluster().gpus_per_node);
        said = said.say(fill(words::UNKNOWN, [label, digits(last)]));
    }
    tag("div.map-controls").child(tag("label").text(words::COLOUR).child(list)).child(form).child(said)
}

/// The GPU with this label or rank.
pub(crate) fn find(wanted: &str, shown: &Shown) -> Option<u64> {
    let wanted = wanted.trim();
    let label = Rank::from_label(wanted, shown.plan.cluster().gpus_per_node);
    let rank = label.map(Rank::get).or_else(|| wanted.parse().ok())?;
    (rank < shown.plan.layout().world_size).then_some(rank)
}
