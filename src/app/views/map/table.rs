//! The map as a table, a page at a time.

use shardscope::quantity::gib;
use shardscope::session::Shown;
use shardscope::session::map::{gpu_lines, relation_name, relations};

use crate::app::act::{Act, Copied};
use crate::app::desk::{Desk, Place};
use crate::app::parts::{Tag, button, copy, details, head, heads, tag, wide};
use crate::app::words::{fill, map as words, numbered};

/// GPUs of one page.
const PAGE: u64 = 64;

pub(crate) fn as_table(desk: &Desk, shown: &Shown) -> Tag {
    let pages = shown.plan.layout().world_size.div_ceil(PAGE).max(1);
    let at = desk.look.map.page.min(pages - 1);
    let open = desk.look.map.table_open;
    let drawn = open.then(|| wide(words::TABLE, table(shown, at * PAGE)));
    let turns = (open && pages > 1).then(|| {
        let turn = |to: u64, ends: bool, label: &'static str| {
            button(desk, "button.button", Act::Turn(to)).flag("disabled", ends).text(label)
        };
        tag("p.pages")
            .child(turn(at.saturating_sub(1), at == 0, words::BEFORE))
            .saying("span.small", numbered(words::PAGE, &[at + 1, pages]))
            .child(turn(at + 1, at + 1 == pages, words::AFTER))
    });
    let same = details("details", false, tag("summary").text(words::AS_TABLE))
        .on(desk, "toggle", Act::Toggle(Place::Map))
        .maybe(drawn)
        .maybe(turns);
    tag("div.map-table").child(copy(desk, Copied::AllGroups, words::COPY)).child(same)
}

fn table(shown: &Shown, first: u64) -> Tag {
    let figure = |figure: String| tag("td.number").say(figure);
    let [gpu, rank, stage, memory] = words::HEADS;
    let mut heads = heads(&[gpu, rank, stage]);
    for kind in relations(&shown.plan) {
        let name = fill(words::GROUP_HEAD, [relation_name(kind).to_owned()]);
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
    tag("table.figures memory").child(tag("thead").child(heads.child(head(memory)))).child(rows)
}
