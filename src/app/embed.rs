//! One panel of a plan for the page of somebody else: `?embed=memory#/1?…` in a frame.

use shardscope::session::{fragment, title};
use yew::html::Html;

use super::desk::{Desk, Draw, Place};
use super::panel::{Drawn, panel};
use super::parts::{card, group, tag};
use super::toolbar::broken_link;
use super::{address, dom, views, words};

/// A panel that can stand alone.
pub(crate) struct View {
    name: &'static str,
    place: Place,
    draw: Draw,
}

const VIEWS: [View; 7] = [
    View { name: "verdict", place: Place::Verdict, draw: views::verdict },
    View { name: "memory", place: Place::Memory, draw: views::memory },
    View { name: "time", place: Place::Time, draw: views::time },
    View { name: "schedule", place: Place::Schedule, draw: views::schedule },
    View { name: "communication", place: Place::Communication, draw: views::communication },
    View { name: "map", place: Place::Map, draw: views::map },
    View { name: "comparison", place: Place::Compare, draw: views::compare },
];

/// The view that the address asks for; the verdict where it asks for one that is not known.
pub(crate) fn asked() -> Option<&'static View> {
    let name = dom::parameter("embed")?;
    VIEWS.iter().find(|view| view.name == name).or(VIEWS.first())
}

/// The page with `view` alone.
pub(crate) fn page(desk: &Desk, view: &View) -> Html {
    let inside = match &desk.state.shown {
        Some(_) => group().component(panel(desk, view.place, Drawn::OfPlan(view.draw))),
        None => tag("p.stale").set("role", "status").say(reason(desk)),
    };
    let link = [&address::base(), "#", &fragment(&desk.state)].concat();
    let foot = tag("footer.foot").child(
        tag("a").attr("href", link).set("target", "_blank").set("rel", "noopener").text(words::page::OPEN),
    );
    let name = desk.state.shown.as_deref().map_or_else(String::new, title);
    let main = tag("main.embedded").saying("h1.hidden", name).child(broken_link(desk)).child(inside);
    group().child(main).child(foot).child(card(desk)).into()
}

/// Why there is no plan, in the words of the first thing that is wrong.
pub(crate) fn reason(desk: &Desk) -> String {
    let said = desk.state.answer.resolution.diagnostics.first();
    said.map(|said| said.message.to_string()).unwrap_or_default()
}
