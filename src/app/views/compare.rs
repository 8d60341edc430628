//! The pinned plan beside the one in hand: what differs, by how much, and why.

use shardscope::quantity::{gib, seconds};
use shardscope::report::compare::{
    Amount, Cause, Comparison, Line, Section, SettingDifference, Side, compare_plans,
};
use shardscope::session::{Event, Shown, title};

use crate::app::act::Act;
use crate::app::desk::{Desk, Place};
use crate::app::parts::{Sign, Tag, button, details, group, headed, table, tag, text};
use crate::app::words::{compare as words, fill, numbered};

pub(crate) fn compare(desk: &Desk, shown: &Shown) -> Tag {
    let Some(pinned) = &desk.state.pinned else { return group() };
    let act = |event: Event, sign: Sign, label: &'static str| {
        button(desk, "button.button quiet", Act::Do(event)).child(sign.icon()).text(label)
    };
    let head = tag("header").with("h2#compare-title", words::TITLE).child(
        tag("div.tools").child(act(Event::Swap, Sign::Swap, words::SWAP)).child(act(
            Event::Unpin,
            Sign::Close,
            words::UNPIN,
        )),
    );
    let sides = tag("dl.sides").child(one(words::PINNED, &pinned.shown)).child(one(words::NOW, shown));
    let panel = headed("section.panel compare#compare", "compare-title").child(head).child(sides);
    panel.child(differences(desk, &pinned.shown, shown))
}

fn differences(desk: &Desk, pinned: &Shown, shown: &Shown) -> Tag {
    if pinned.plan == shown.plan {
        return tag("p.soft").text(words::SAME);
    }
    let comparison = compare_plans(side(pinned), side(shown));
    let all = desk.look.all_compared;
    group()
        .child(settings(&comparison.settings))
        .child(numbers(&comparison, all))
        .child(
            button(desk, "button.button", Act::All(Place::Compare)).says("aria-expanded", all).text(if all {
                words::FEWER
            } else {
                words::ALL
            }),
        )
        .child(causes(words::MEMORY_CAUSES, &comparison.memory_causes))
        .child(causes(words::TIME_CAUSES, &comparison.time_causes))
}

fn one(name: &'static str, shown: &Shown) -> Tag {
    let step = seconds(shown.report.time.step);
    let line = shown
        .worst()
        .map(|worst| fill(words::SIDE, [worst.fit.words().to_owned(), gib(worst.reserved), step]));
    let line = line.unwrap_or_default();
    tag("div").with("dt", name).child(tag("dd").say(title(shown)).saying("span.soft", line))
}

fn side(shown: &Shown) -> Side<'_> {
    Side { resolution: &shown.answer.resolution, plan: &shown.plan, report: &shown.report }
}

fn settings(settings: &[SettingDifference]) -> Tag {
    let derived = settings.iter().filter(|one| !one.stated).count() as u64;
    let drawn = group().with("h3.sub", words::SETTINGS).child(rows_of(settings, true, words::SETTINGS));
    let derived = (derived > 0).then(|| {
        let summary = tag("summary").say(numbered(words::FOLLOW, &[derived]));
        details("details.follows", false, summary).child(rows_of(settings, false, words::FOLLOWING))
    });
    drawn.maybe(derived)
}

fn rows_of(settings: &[SettingDifference], stated: bool, label: &str) -> Tag {
    let value = |value: &str| -> String { if value.is_empty() { words::NONE } else { value }.to_owned() };
    let mut rows = group();
    for one in settings.iter().filter(|one| one.stated == stated) {
        rows = rows.child(
            tag("tr")
                .cell(tag("code").say(one.name.to_string()))
                .words(&value(&one.before))
                .words(&value(&one.after)),
        );
    }
    table(label, "table.figures differing", &words::SETTING_HEADS, rows)
}

fn numbers(comparison: &Comparison, all: bool) -> Tag {
    group().each(&comparison.sections, |section| numbers_of(section, all))
}

fn numbers_of(section: &Section, all: bool) -> Tag {
    let mut rows = group();
    for line in section.lines.iter().filter(|line| all || line.before != line.after) {
        rows = rows.child(row(line));
    }
    let drawn = group().with("h3.sub", section.title);
    if rows.is_empty() {
        return drawn.with("p.soft small", words::EQUAL);
    }
    drawn.child(table(
        &fill(words::TABLE, [section.title.to_owned()]),
        "table.figures",
        &words::NUMBER_HEADS,
        rows,
    ))
}

fn shown(amount: Option<Amount>) -> String {
    amount.map_or_else(|| words::NONE.to_owned(), Amount::shown)
}

fn row(line: &Line) -> Tag {
    let change = text(line.change().unwrap_or_default());
    let change = match line.is_better() {
        Some(true) => tag("span.good").child(change).with("span.hidden", words::BETTER),
        Some(false) => tag("span.bad").child(change).with("span.hidden", words::WORSE),
        None => tag("span").child(change),
    };
    tag("tr").words(&line.label).number(shown(line.before)).strong(shown(line.after)).figure(change)
}

fn causes(title: &'static str, causes: &[Cause]) -> Tag {
    if causes.is_empty() {
        return group();
    }
    let rows = group().each(causes, |cause| {
        tag("tr")
            .words(&cause.path)
            .number(cause.before.shown())
            .number(cause.after.shown())
            .strong(cause.after.difference(cause.before))
    });
    group().with("h3.sub", title).child(table(title, "table.figures causes", &words::CAUSE_HEADS, rows))
}
