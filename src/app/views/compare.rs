//! The pinned plan beside the one in hand: what differs, by how much, and why.

use shardscope::quantity::{gib, seconds};
use shardscope::report::compare::{
    Amount, Cause, Comparison, Line, Section, SettingDifference, Side, compare_plans,
};
use shardscope::session::{Event, Held, Pinned, Shown, title};
use yew::prelude::*;

use crate::app::parts::{Cell, Row, Sign, icon, table};

#[derive(Properties, PartialEq)]
pub(crate) struct Props {
    pub pinned: Held<Pinned>,
    pub shown: Held<Shown>,
    pub send: Callback<Event>,
}

#[component]
pub(crate) fn Compare(props: &Props) -> Html {
    let all = use_state(|| false);
    let comparison = use_memo((props.pinned.clone(), props.shown.clone()), |(pinned, shown)| {
        compare_plans(side(&pinned.shown), side(shown))
    });
    let event = |event: Event| props.send.reform(move |_: MouseEvent| event.clone());
    let toggle = {
        let all = all.clone();
        move |_| all.set(!*all)
    };
    html! {
        <section class="panel compare" id="compare" aria-labelledby="compare-title">
            <header>
                <h2 id="compare-title">{ "Compared with the pinned plan" }</h2>
                <div class="tools">
                    <button type="button" class="button quiet" onclick={event(Event::Swap)}>{ icon(Sign::Swap) }{ "Swap" }</button>
                    <button type="button" class="button quiet" onclick={event(Event::Unpin)}>{ icon(Sign::Close) }{ "Unpin" }</button>
                </div>
            </header>
            <dl class="sides">
                { one("Pinned", &props.pinned.shown) }
                { one("Now", &props.shown) }
            </dl>
            if props.pinned.shown.plan == props.shown.plan {
                <p class="soft">{ "Both are the same plan. Change anything, or take an example, and the differences stand here." }</p>
            } else {
                { settings(&comparison.settings) }
                { numbers(&comparison, *all) }
                <button type="button" class="button" aria-expanded={if *all { "true" } else { "false" }} onclick={toggle}>
                    { if *all { "Only what differs" } else { "Equal numbers too" } }
                </button>
                { causes("Where the fullest GPU's memory changed most", &comparison.memory_causes) }
                { causes("Where the step's time changed most", &comparison.time_causes) }
            }
        </section>
    }
}

fn one(name: &str, shown: &Shown) -> Html {
    let needs = shown
        .worst()
        .map_or_else(String::new, |worst| format!("{}: {}", worst.fit.words(), gib(worst.reserved)));
    html! {
        <div><dt>{ name }</dt><dd>{ title(shown) }<span class="soft">{ format!("{needs}, {} a step", seconds(shown.report.time.step)) }</span></dd></div>
    }
}

fn side(shown: &Shown) -> Side<'_> {
    Side { resolution: &shown.answer.resolution, plan: &shown.plan, report: &shown.report }
}

fn settings(settings: &[SettingDifference]) -> Html {
    let (stated, derived): (Vec<_>, Vec<_>) = settings.iter().partition(|one| one.stated);
    html! {
        <>
            <h3 class="sub">{ "Settings that differ" }</h3>
            { rows_of(&stated, "Settings that differ") }
            if !derived.is_empty() {
                <details class="follows">
                    <summary>{ format!("{} more follow from them", derived.len()) }</summary>
                    { rows_of(&derived, "Settings that follow") }
                </details>
            }
        </>
    }
}

fn rows_of(settings: &[&SettingDifference], label: &str) -> Html {
    let value = |value: &str| if value.is_empty() { "none".to_owned() } else { value.to_owned() };
    let row = |one: &&SettingDifference| {
        Row::of(vec![
            Cell::Drawn(html! { <code>{ one.name }</code> }),
            Cell::Text(value(&one.before)),
            Cell::Text(value(&one.after)),
        ])
    };
    table(label, "differing", &["Setting", "Pinned", "Now"], settings.iter().map(row).collect())
}

fn numbers(comparison: &Comparison, all: bool) -> Html {
    comparison.sections.iter().map(|section| numbers_of(section, all)).collect()
}

fn numbers_of(section: &Section, all: bool) -> Html {
    let differs = |line: &&Line| all || line.before != line.after;
    let rows: Vec<Row> = section.lines.iter().filter(differs).map(row).collect();
    html! {
        <>
            <h3 class="sub">{ section.title }</h3>
            if rows.is_empty() {
                <p class="soft small">{ "All the same." }</p>
            } else {
                { table(&format!("Compared: {}", section.title), "", &["Number", ">Pinned", ">Now", ">Change"], rows) }
            }
        </>
    }
}

fn shown(amount: Option<Amount>) -> String {
    amount.map_or_else(|| "none".to_owned(), Amount::shown)
}

fn row(line: &Line) -> Row {
    let (class, word) = match line.is_better() {
        Some(true) => ("good", "better"),
        Some(false) => ("bad", "worse"),
        None => ("", ""),
    };
    let change = html! {
        <span class={class}>{ line.change().unwrap_or_default() }
            if !word.is_empty() { <span class="hidden">{ format!(", {word}") }</span> }</span>
    };
    Row::of(vec![
        Cell::Text(line.label.clone()),
        Cell::Number(shown(line.before)),
        Cell::Strong(shown(line.after)),
        Cell::DrawnNumber(change),
    ])
}

fn causes(title: &str, causes: &[Cause]) -> Html {
    if causes.is_empty() {
        return Html::default();
    }
    let row = |cause: &Cause| {
        Row::of(vec![
            Cell::Text(cause.path.clone()),
            Cell::Number(cause.before.shown()),
            Cell::Number(cause.after.shown()),
            Cell::Strong(cause.after.difference(cause.before)),
        ])
    };
    html! {
        <>
            <h3 class="sub">{ title.to_owned() }</h3>
            { table(title, "causes", &["Part", ">Pinned", ">Now", ">Change"], causes.iter().map(row).collect()) }
        </>
    }
}
