//! The guided tour: a card that leads from part to part of the page and stays out of its way.

use shardscope::quantity::{gib, grouped, percent, rounded, seconds, size};
use shardscope::session::Shown;

use crate::app::act::Act;
use crate::app::desk::Desk;
use crate::app::dom;
use crate::app::parts::{Sign, Tag, button, group, headed, tag};
use crate::app::words::{digits, fill, numbered, page, tour as words};

/// What each step speaks of; its words stand in `words::tour::STEPS`.
const STEPS: [&str; 8] =
    [".verdict", ".knobs", "#memory", "#time", "#schedule", "#communication", "#map", ".toolbar .main"];

/// The button that begins it, called `label`; nothing while there is nothing to show.
pub(crate) fn take(desk: &Desk, shape: &'static str, label: &'static str) -> Tag {
    match desk.state.shown {
        Some(_) => button(desk, shape, Act::Tour(Some(0))).text(label),
        None => group(),
    }
}

/// The card of the step it is at.
pub(crate) fn tour(desk: &Desk) -> Tag {
    let (Some(at), Some(shown)) = (desk.look.tour, &desk.state.shown) else { return group() };
    let Some([title, text]) = words::STEPS.get(at) else { return group() };
    let close = button(desk, "button.button quiet", Act::Tour(None))
        .set("aria-label", page::CLOSE)
        .child(Sign::Close.icon());
    let said = tag("div")
        .set("aria-live", "polite")
        .with("h2#tour-title", title)
        .saying("p", fill(text, figures(shown)));
    let back = button(desk, "button.button", Act::Tour(Some(at.saturating_sub(1))));
    let last = at + 1 == STEPS.len();
    let next = button(desk, "button.button main", Act::Tour((!last).then_some(at + 1)));
    let turns = tag("div.turns")
        .saying("span.soft small", numbered(words::PLACE, &[at as u64 + 1, STEPS.len() as u64]))
        .child(back.says("aria-disabled", at == 0).text(words::BACK))
        .child(next.text(if last { words::DONE } else { words::NEXT }));
    headed("div.tour#tour", "tour-title")
        .set("role", "dialog")
        .set("tabindex", "-1")
        .on(desk, "keydown", Act::Tour(Some(at)))
        .child(close)
        .child(said)
        .child(turns)
}

/// What the steps tell of the plan shown.
fn figures(shown: &Shown) -> [String; 10] {
    let (time, cluster) = (&shown.report.time, shown.plan.cluster());
    let worst = shown.worst();
    let wire = shown.report.traffic.stages().into_iter().map(|stage| stage.wire).max().unwrap_or_default();
    [
        worst.map(|worst| digits(worst.stage)).unwrap_or_default(),
        worst.map(|worst| gib(worst.reserved)).unwrap_or_default(),
        gib(cluster.accelerator.memory),
        cluster.accelerator.name.to_string(),
        seconds(time.step),
        rounded(time.tokens_per_second),
        time.schedule.name.to_owned(),
        percent(time.bubble_fraction),
        size(wire),
        grouped(shown.plan.layout().world_size),
    ]
}

/// Where `key` leads from step `at`; nothing for keys that lead nowhere.
pub(crate) fn turned(key: &str, at: usize) -> Option<Option<usize>> {
    match key {
        "Escape" => Some(None),
        "ArrowLeft" => Some(Some(at.saturating_sub(1))),
        "ArrowRight" => Some(Some((at + 1).min(STEPS.len() - 1))),
        _ => None,
    }
}

/// Shows the part that step `at` speaks of; the last one takes the focus when the tour is over.
pub(crate) fn lead(at: Option<usize>) {
    const MARK: &str = "data-toured";
    let last = dom::query("[data-toured]");
    if let Some(last) = &last {
        let _ = last.remove_attribute(MARK);
    }
    match (at.and_then(|at| dom::query(STEPS.get(at)?)), last) {
        (Some(place), _) => {
            let _ = place.set_attribute(MARK, "");
            dom::bring(&place);
            if dom::query("#tour:focus-within").is_none() {
                dom::element("tour").iter().for_each(dom::focus);
            }
        }
        (None, Some(last)) => dom::focus(&last),
        _ => {}
    }
}
