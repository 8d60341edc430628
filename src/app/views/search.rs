//! Other layouts for the same model on the same machines, tried in slices so that the page stays quick.

use shardscope::quantity::{gib, grouped, seconds};
use shardscope::search::{Outcome, Walk};
use shardscope::session::Shown;

use super::advice::{try_it, written};
use crate::app::act::Act;
use crate::app::desk::Desk;
use crate::app::parts::{Tag, button, group, section, table, tag};
use crate::app::words::{fill, search as words};

/// Layouts shown.
const SHOWN: usize = 12;

pub(crate) fn search(desk: &Desk, _: &Shown) -> Tag {
    let look = &desk.look;
    let label = match (look.searching, look.walk.is_some()) {
        (true, _) => words::STOP,
        (false, true) => words::AGAIN,
        (false, false) => words::START,
    };
    let panel = section(desk, "section.panel#search", "search-title", &words::PANEL)
        .child(button(desk, "button.button", Act::Search).text(label));
    panel.maybe(look.walk.as_ref().map(|walk| results(desk, &walk.borrow())))
}

fn results(desk: &Desk, walk: &Walk) -> Tag {
    let more = desk.look.searching;
    let (tried, all) = walk.progress();
    let mut rows = group();
    for found in walk.best().iter().take(SHOWN) {
        rows = rows.child(row(desk, found));
    }
    let found = match (rows.is_empty(), more) {
        (true, true) => group(),
        (true, false) => tag("p").text(words::NONE),
        _ => table(words::TABLE, "table.figures", &words::HEADS, rows),
    };
    let said = if more { words::GOING } else { words::DONE };
    let said = fill(said, [grouped(tried), grouped(all), grouped(walk.refused()), grouped(walk.too_large())]);
    let progress = more.then(|| {
        tag("progress.progress").set("aria-label", words::START).count("max", all).count("value", tried)
    });
    group().child(tag("p.small soft searched").set("role", "status").say(said)).maybe(progress).child(found)
}

fn row(desk: &Desk, found: &Outcome) -> Tag {
    let changes =
        if found.changes.is_empty() { words::UNCHANGED.to_owned() } else { written(&found.changes) };
    tag("tr")
        .number(seconds(found.step))
        .number(gib(found.peak))
        .cell(tag("span.changes").say(changes))
        .cell(try_it(desk, &found.changes))
}
