//! The map as a table, a page at a time.

use shardscope::quantity::gib;
use shardscope::session::Shown;
use shardscope::session::map::{gpu_lines, relation_name, relations};

use crate::app::act::{Act, Copied};
use crate::app::desk::{Desk, Place};
use crate::app::parts::{Tag, button, copy, details, head, tag, wide};

/// GPUs of one page.
const PAGE: u64 = 64;

pub(crate) fn as_table(desk: &Desk, shown: &Shown) -> Tag {
    let pages = shown.plan.layout().world_size.div_ceil(PAGE).max(1);
    let at = desk.look.map.page.min(pages - 1);
    let open = desk.look.map.table_open;
    let drawn = open.then(|| wide("The GPUs and their groups".to_owned(), table(shown, at * PAGE)));
    let turns = (open && pages > 1).then(|| {
        let turn = |to: u64, ends: bool, label: &'static str| {
            button(desk, "button.button", Act::Turn(to)).flag("disabled", ends).text(label)
        };
        tag("p.pages")
            .child(turn(at.saturating_sub(1), at == 0, "Before"))
            .saying("span.small", format!("page {} of {pages}", at + 1))
            .child(turn(at + 1, at + 1 == pages, "After"))
    });
    let same = details("details", false, tag("summary").text("The same as a table"))
        .on(desk, "toggle", Act::Toggle(Place::Map))
        .maybe(drawn)
        .maybe(turns);
    tag("div.map-table").child(copy(desk, Copied::AllGroups, "Copy all groups as text")).child(same)
}

fn table(shown: &Shown, first: u64) -> Tag {
    let figure = |figure: String| tag("td.number").say(figure);
    let mut heads = tag("tr").child(head("GPU")).child(head(">rank")).child(head(">stage"));
    for kind in relations(&shown.plan) {
        let name = format!("{} group", relation_name(kind));
        heads = heads.child(tag("th.number").set("scope", "col").say(name));
    }
    let rows = tag("tbody").each(&gpu_lines(&shown.plan, first, PAGE), |line| {
        let mut row = tag("tr")
            .child(tag("th.mono").set("scope", "row").say(line.label.clone()))
            .child(figure(line.rank.get().to_string()))
            .child(figure(line.stage.to_string()));
        for group in &line.groups {
            row = row.child(figure(group.map_or_else(|| "–".to_owned(), |group| group.to_string())));
        }
        row.child(figure(shown.memory_of(line.rank).map(gib).unwrap_or_default()))
    });
    tag("table.figures memory").child(tag("thead").child(heads.child(head(">memory")))).child(rows)
}
