//! The pinned plan beside the one in hand: what differs, by how much, and why.

use shardscope::quantity::{gib, seconds};
use shardscope::report::compare::{
    Amount, Cause, Comparison, Line, Section, SettingDifference, Side, compare_plans,
};
use shardscope::session::{Event, Shown, title};

use crate::app::act::Act;
use crate::app::desk::{Desk, Place};
use crate::app::parts::{Sign, Tag, button, details, group, headed, table, tag, text};

/// Headings of tables of settings, of numbers and of causes.
const SETTINGS: [&str; 3] = ["Setting", "Pinned", "Now"];
const NUMBERS: [&str; 4] = ["Number", ">Pinned", ">Now", ">Change"];
const CAUSES: [&str; 4] = ["Part", ">Pinned", ">Now", ">Change"];

pub(crate) fn compare(desk: &Desk, shown: &Shown) -> Tag {
    let Some(pinned) = &desk.state.pinned else { return group() };
    let act = |event: Event, sign: Sign, label: &'static str| {
        button(desk, "button.button quiet", Act::Do(event)).child(sign.icon()).text(label)
    };
    let head = tag("header").with("h2#compare-title", "Compared with the pinned plan").child(
        tag("div.tools").child(act(Event::Swap, Sign::Swap, "Swap")).child(act(
            Event::Unpin,
            Sign::Close,
            "Unpin",
        )),
    );
    let sides = tag("dl.sides").child(one("Pinned", &pinned.shown)).child(one("Now", shown));
    let panel = headed("section.panel compare#compare", "compare-title").child(head).child(sides);
    panel.child(differences(desk, &pinned.shown, shown))
}

fn differences(desk: &Desk, pinned: &Shown, shown: &Shown) -> Tag {
    if pinned.plan == shown.plan {
        return tag("p.soft").text(
            "Both are the same plan. Change anything, or take an example, and the differences stand here.",
        );
    }
    let comparison = compare_plans(side(pinned), side(shown));
    let all = desk.look.all_compared;
    group()
        .child(settings(&comparison.settings))
        .child(numbers(&comparison, all))
        .child(
            button(desk, "button.button", Act::All(Place::Compare)).says("aria-expanded", all).text(if all {
                "Only what differs"
            } else {
                "Equal numbers too"
            }),
        )
        .child(causes("Where the fullest GPU's memory changed most", &comparison.memory_causes))
        .child(causes("Where the step's time changed most", &comparison.time_causes))
}

fn one(name: &'static str, shown: &Shown) -> Tag {
    let mut needs = String::new();
    if let Some(worst) = shown.worst() {
        needs = format!("{}: {}", worst.fit.words(), gib(worst.reserved));
    }
    let line = format!("{needs}, {} a step", seconds(shown.report.time.step));
    tag("div").with("dt", name).child(tag("dd").say(title(shown)).saying("span.soft", line))
}

fn side(shown: &Shown) -> Side<'_> {
    Side { resolution: &shown.answer.resolution, plan: &shown.plan, report: &shown.report }
}

fn settings(settings: &[SettingDifference]) -> Tag {
    let derived = settings.iter().filter(|one| !one.stated).count();
    let drawn =
        group().with("h3.sub", "Settings that differ").child(rows_of(settings, true, "Settings that differ"));
    let derived = (derived > 0).then(|| {
        let summary = tag("summary").say(format!("{derived} more follow from them"));
        details("details.follows", false, summary).child(rows_of(settings, false, "Settings that follow"))
    });
    drawn.maybe(derived)
}

fn rows_of(settings: &[SettingDifference], stated: bool, label: &str) -> Tag {
    let value = |value: &str| if value.is_empty() { "none".to_owned() } else { value.to_owned() };
    let mut rows = group();
    for one in settings.iter().filter(|one| one.stated == stated) {
        rows = rows.child(
            tag("tr")
                .cell(tag("code").say(one.name.to_string()))
                .words(value(&one.before))
                .words(value(&one.after)),
        );
    }
    table(label.to_owned(), "table.figures differing", &SETTINGS, rows)
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
        return drawn.with("p.soft small", "All the same.");
    }
    drawn.child(table(format!("Compared: {}", section.title), "table.figures", &NUMBERS, rows))
}

fn shown(amount: Option<Amount>) -> String {
    amount.map_or_else(|| "none".to_owned(), Amount::shown)
}

fn row(line: &Line) -> Tag {
    let change = text(line.change().unwrap_or_default());
    let change = match line.is_better() {
        Some(true) => tag("span.good").child(change).with("span.hidden", ", better"),
        Some(false) => tag("span.bad").child(change).with("span.hidden", ", worse"),
        None => tag("span").child(change),
    };
    tag("tr").words(line.label.clone()).number(shown(line.before)).strong(shown(line.after)).figure(change)
}

fn causes(title: &'static str, causes: &[Cause]) -> Tag {
    if causes.is_empty() {
        return group();
    }
    let rows = group().each(causes, |cause| {
        tag("tr")
            .words(cause.path.clone())
            .number(cause.before.shown())
            .number(cause.after.shown())
            .strong(cause.after.difference(cause.before))
    });
    group().with("h3.sub", title).child(table(title.to_owned(), "table.figures causes", &CAUSES, rows))
}
