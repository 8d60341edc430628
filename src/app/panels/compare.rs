//! The pinned plan beside the one shown: what differs, by how much, and why.

use shardscope::report::compare::{
    Amount, Cause, ComparedNumber, Comparison, Section as Numbers, SettingDifference, Side, compare_plans,
};
use shardscope::session::{Event, PtrEq, Shown, cut, title};
use shardscope::units::{decimal, gib, seconds};
use yew::prelude::*;

use super::panel::{Panel, PlanProps};
use super::schedule::{MiniSchedule, on_one_scale};
use crate::app::context::{AppContext, send, use_dispatch};
use crate::app::panel_id::PanelId;
use crate::app::widgets::{Sign, heads, icon, wide};
use crate::app::words::{NONE, schedule_name};

pub(super) const PANEL: Panel = Panel {
    id: PanelId::Compare,
    tab: Some("Compare"),
    view: |shown| html! { <Compare {shown} /> },
    story: None,
};

#[component(Compare)]
fn compare(PlanProps { shown }: &PlanProps) -> Html {
    let dispatch = use_dispatch();
    let all = use_state_eq(|| false);
    let app = use_context::<AppContext>();
    // The tab disappears with the pinned plan, but an address may still name it.
    let Some(pinned) = app.and_then(|app| app.session.pinned.clone()) else { return html!() };
    let button = |event: Event, sign: Sign, label: &'static str| {
        html! {
            <button type="button" class="button quiet" onclick={send(&dispatch, move || event.clone().into())}>
                { icon(sign) }
                { label }
            </button>
        }
    };
    let toggle = {
        let (all, now) = (all.setter(), *all);
        move |_| all.set(!now)
    };
    // Plans, not inputs: two spellings of one run have nothing to compare.
    let inside = if pinned.shown.plan == shown.plan {
        html! {
            <p class="soft">
                { "Both plans are the same. Change anything, or open an example, to see the differences." }
            </p>
        }
    } else {
        let comparison = compare_plans(side(&pinned.shown), side(shown));
        html! {
            <>
                { causes("Largest changes in step time", &comparison.time_causes) }
                { causes("Largest changes in peak memory", &comparison.memory_causes) }
                { schedules(&pinned.shown, shown) }
                { settings(&comparison.settings) }
                { numbers(&comparison, *all) }
                <button type="button" class="button" aria-expanded={all.to_string()} onclick={toggle}>
                    { if *all { "Show only differences" } else { "Show equal numbers" } }
                </button>
            </>
        }
    };
    html! {
        <section id="comparison" class="panel compare" aria-labelledby="comparison-title">
            <header>
                <h2 id="comparison-title">{ "Compared with the pinned plan" }</h2>
                <div class="tools">
                    { button(Event::Swap, Sign::Swap, "Swap") }
                    { button(Event::Unpin, Sign::Close, "Unpin") }
                </div>
            </header>
            <dl class="sides">
                { one("Pinned", &pinned.shown) }
                { one("Now", shown) }
            </dl>
            { inside }
        </section>
    }
}

fn one(name: &'static str, shown: &Shown) -> Html {
    let step = seconds(shown.report.time.step);
    let line = shown
        .fullest()
        .map(|fullest| format!("{}: {} peak, {step} per step", fullest.fit.words(), gib(fullest.peak)));
    html! {
        <div>
            <dt>{ name }</dt>
            <dd>{ title(shown) }<span class="soft">{ line.unwrap_or_default() }</span></dd>
        </div>
    }
}

/// One step of each plan, above each other and as wide as they are long.
fn schedules(pinned: &PtrEq<Shown>, now: &PtrEq<Shown>) -> Html {
    let length = |shown: &Shown| shown.report.time.step.get();
    // One scale: a shorter step must look shorter.
    let wide = length(pinned).max(length(now));
    let step = |name: &'static str, shown: &PtrEq<Shown>| {
        html! {
            <figure class="step-of">
                <figcaption class="small">
                    { format!("{name}: {}", cut(&shown.plan)) }
                    <span class="soft">{ format!(" {}, {}", schedule_name(shown.report.time.schedule.name), seconds(shown.report.time.step)) }</span>
                </figcaption>
                <MiniSchedule shown={shown.clone()} {wide} />
            </figure>
        }
    };
    html! {
        <>
            <h3 class="sub">{ "One step of each" }</h3>
            { on_one_scale(wide, html! { <>{ step("Pinned", pinned) }{ step("Now", now) }</> }) }
        </>
    }
}

fn side(shown: &Shown) -> Side<'_> {
    Side { resolution: &shown.answer.resolution, plan: &shown.plan, report: &shown.report }
}

fn settings(settings: &[SettingDifference]) -> Html {
    let derived = settings.iter().filter(|one| !one.stated).count();
    html! {
        <>
            <h3 class="sub">{ "Settings that differ" }</h3>
            { rows_of(settings, true, "Settings that differ") }
            if derived > 0 {
                <details class="follows">
                    <summary>{ format!("{derived} derived settings also changed") }</summary>
                    { rows_of(settings, false, "Derived settings that differ") }
                </details>
            }
        </>
    }
}

fn rows_of(settings: &[SettingDifference], stated: bool, label: &'static str) -> Html {
    let value = |value: &str| if value.is_empty() { "none".to_owned() } else { value.to_owned() };
    wide(
        label,
        html! { <table class="figures differing">
            <thead>{ heads(&["Setting", "Pinned", "Now"]) }</thead>
            <tbody>
                { for settings.iter().filter(|one| one.stated == stated).map(|one| html! {
                    <tr>
                        <th scope="row"><code>{ one.name.to_string() }</code></th>
                        <td>{ value(&one.before) }</td>
                        <td>{ value(&one.after) }</td>
                    </tr>
                }) }
            </tbody>
        </table> },
    )
}

fn numbers(comparison: &Comparison, all: bool) -> Html {
    html! { <>{ for comparison.sections.iter().map(|section| numbers_of(section, all)) }</> }
}

fn numbers_of(section: &Numbers, all: bool) -> Html {
    let rows: Vec<Html> = section.lines.iter().filter(|line| all || !reads_equal(line)).map(row).collect();
    html! {
        <>
            <h3 class="sub">{ section.title }</h3>
            if rows.is_empty() {
                <p class="soft small">{ "All the same." }</p>
            } else {
                { wide(format!("Compared: {}", section.title), html! { <table class="figures">
                        <thead>{ heads(&["Number", ">Pinned", ">Now", ">Change"]) }</thead>
                        <tbody>{ for rows }</tbody>
                    </table> }) }
            }
        </>
    }
}

fn amount_text(amount: Option<Amount>) -> String {
    amount.map_or_else(|| NONE.to_owned(), Amount::shown)
}

/// Whether both figures read the same: a difference below their last digit is invisible.
fn reads_equal(line: &ComparedNumber) -> bool {
    amount_text(line.before) == amount_text(line.after)
}

fn row(line: &ComparedNumber) -> Html {
    let same = reads_equal(line);
    let (class, spoken) = match line.is_better().filter(|_| !same) {
        Some(true) => (Some("good"), ", better"),
        Some(false) => (Some("bad"), ", worse"),
        None => (None, ""),
    };
    let change = if same { String::new() } else { line.change().unwrap_or_default() };
    html! {
        <tr>
            <th scope="row">{ &line.label }</th>
            <td class="number">{ amount_text(line.before) }</td>
            <td class="number strong">{ amount_text(line.after) }</td>
            <td class="number">
                <span {class}>
                    { change }
                    <span class="hidden">{ spoken }</span>
                </span>
            </td>
        </tr>
    }
}

/// The pinned plan's amount above this one's.
fn two_bars((before, after): (f64, f64), most: f64) -> Html {
    let bar = |class: &'static str, y: &'static str, amount: f64| {
        let width = decimal(amount / most.max(f64::MIN_POSITIVE) * 100.0, 1) + "%";
        html! { <rect {class} {y} {width} height="45%" /> }
    };
    html! {
        <svg class="bar two-bars" aria-hidden="true">
            { bar("was", "0", before) }
            { bar(if after > before { "more" } else { "less" }, "55%", after) }
        </svg>
    }
}

fn causes(title: &'static str, causes: &[Cause]) -> Html {
    if causes.is_empty() {
        return html!();
    }
    let numbers = |cause: &Cause| (cause.before.number(), cause.after.number());
    // One scale for all causes, so that the longest bar is the largest part.
    let most = causes.iter().map(numbers).map(|(before, after)| before.max(after)).fold(0.0, f64::max);
    html! {
        <>
            <h3 class="sub">{ title }</h3>
            { wide(title, html! { <table class="figures causes">
                    <thead>{ heads(&["Part", "pinned above now", ">Pinned", ">Now", ">Change"]) }</thead>
                    <tbody>
                        { for causes.iter().map(|cause| html! {
                            <tr>
                                <th scope="row">{ &cause.path }</th>
                                <td class="bar-cell">{ two_bars(numbers(cause), most) }</td>
                                <td class="number">{ cause.before.shown() }</td>
                                <td class="number">{ cause.after.shown() }</td>
                                <td class="number strong">{ cause.after.difference(cause.before) }</td>
                            </tr>
                        }) }
                    </tbody>
                </table> }) }
        </>
    }
}
