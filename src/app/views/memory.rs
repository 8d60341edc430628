//! The memory of each stage: a table of figures that explain themselves, and the tree of one stage.

use shardscope::estimate::{Totals, memory_doubts};
use shardscope::plan::{Field, LeftOut};
use shardscope::quantity::{Bytes, gib, grouped};
use shardscope::session::{Event, Shown, StageMemory, Use, explain_memory};

use crate::app::act::{Act, Why};
use crate::app::desk::Desk;
use crate::app::parts::{
    Tag, choose, group, head, key, number, options, section, tag, tree, wide, with_remark,
};
use crate::app::words::{fill, memory as words};

/// Columns of the table.
const COLUMNS: u64 = 9;

pub(crate) fn memory(desk: &Desk, shown: &Shown) -> Tag {
    section(desk, "section.panel#memory", "memory-title", &words::PANEL)
        .child(wide(words::TABLE, table(desk, shown)))
        .child(switches(desk, shown))
        .maybe(unsure(shown))
        .child(stage_tree(desk, shown))
}

fn table(desk: &Desk, shown: &Shown) -> Tag {
    let of_use = |kind: &Use| tag("th.number").set("scope", "col").child(key(*kind)).text(kind.name());
    let heads = tag("tr")
        .child(head(words::STAGE))
        .each(&Use::ALL[..5], of_use)
        .child(head(words::ALLOCATED))
        .child(of_use(&Use::Framework))
        .child(head(words::DEVICE));
    let rows = tag("tbody")
        .each(&shown.stages, |stage| line(desk, stage))
        .each(shown.report.whole.as_slice(), whole);
    tag("table.figures memory").child(tag("thead").child(heads)).child(rows)
}

/// What is counted beside the run's own tensors, each to be left out.
fn switches(desk: &Desk, shown: &Shown) -> Tag {
    let left = shown.plan.recipe().left_out;
    let terms: Vec<(&str, &str)> = LeftOut::NAMES.into_iter().zip(words::TERMS).collect();
    let one = |(name, label): &(&'static str, &'static str)| {
        let others = LeftOut::NAMES.into_iter().filter(|other| (other != name) == left.holds(other));
        let value = others.collect::<Vec<_>>().join(" ");
        let set = Event::Set { name: Field::MemoryLeftOut.name().to_owned(), value };
        let switch = tag("input").set("type", "checkbox").checked(!left.holds(name));
        tag("label").child(switch.on(desk, "change", Act::Do(set))).text(label)
    };
    tag("fieldset.terms").child(tag("legend").told(desk, words::COUNTED)).each(&terms, one)
}

/// What the anatomy of a peak does not establish yet for such a plan.
fn unsure(shown: &Shown) -> Option<Tag> {
    let doubts = memory_doubts(&shown.plan);
    (!doubts.is_empty()).then(|| tag("ul.unknowns").each(&doubts, |doubt| tag("li").text(doubt)))
}

/// GiB without the unit, which stands above the table.
fn bare(bytes: Bytes) -> String {
    gib(bytes).replace(" GiB", "")
}

fn line(desk: &Desk, stage: &StageMemory) -> Tag {
    let figure = |kind: Option<Use>, bytes| number(desk, bare(bytes), Why::Memory(stage.stage, kind));
    let mut row = tag("tr").words(&stage.stage.to_string());
    for (kind, bytes) in Use::ALL.into_iter().zip(stage.uses) {
        if kind == Use::Framework {
            row = row.strong(bare(stage.allocated));
        }
        row = row.figure(figure(Some(kind), bytes));
    }
    let device = tag("strong")
        .set("class", stage.fit.class())
        .child(figure(None, stage.reserved))
        .with("span.hidden", stage.fit.words());
    with_remark(row.figure(device), COLUMNS, about(stage))
}

/// The whole model on one device, for comparison.
fn whole(totals: &Totals) -> Tag {
    let row = tag("tr.uncut").words(words::UNCUT);
    let row = totals.columns().into_iter().fold(row, |row, bytes| row.number(bare(bytes)));
    with_remark(row, COLUMNS, words::ABOUT_UNCUT.to_owned())
}

fn about(stage: &StageMemory) -> String {
    let mut held = String::new();
    for count in &stage.in_flight {
        held.push_str(if held.is_empty() { "" } else { " + " });
        held.push_str(&grouped(*count));
    }
    fill(words::stage(&held), [stage.holds.clone(), stage.at.clone(), held, gib(stage.between_steps)])
}

/// All of one stage's memory, down to the tensor.
fn stage_tree(desk: &Desk, shown: &Shown) -> Tag {
    let Some(root) = explain_memory(&shown.report.memory, stage_chosen(desk, shown), None) else {
        return group();
    };
    let head = tag("div.sub tree-head")
        .with("h3", words::TREE)
        .child(tag("label.small").text(words::STAGE).text(" ").child(stage_list(desk, shown)));
    group().child(head).child(tree(&root, 2))
}

/// The stage that is looked at: the one chosen, or else the fullest.
pub(super) fn stage_chosen(desk: &Desk, shown: &Shown) -> u64 {
    let known = |stage: &u64| shown.stages.iter().any(|known| known.stage == *stage);
    desk.look.stage.filter(known).unwrap_or_else(|| shown.worst().map_or(0, |worst| worst.stage))
}

/// The list of stages.
pub(super) fn stage_list(desk: &Desk, shown: &Shown) -> Tag {
    let stages: Vec<String> = shown.stages.iter().map(|known| known.stage.to_string()).collect();
    let list = choose().set("aria-label", words::STAGE).on(desk, "change", Act::Stage);
    options(list, &mut stages.iter().map(String::as_str), &stage_chosen(desk, shown).to_string())
}
