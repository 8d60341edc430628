//! The other schedules that the plan could use, one of them drawn below its own.

use shardscope::session::schedule::{Alternative, StepTimeline, alternatives};
use shardscope::units::{gib, grouped, percent, seconds};
use web_sys::Element;
use yew::prelude::*;

use super::mini::{on_one_scale, small};
use crate::app::panels::advice::Apply;
use crate::app::panels::panel::PlanProps;
use crate::app::widgets::{heads, pair, wide};
use crate::app::words::schedule_name;

/// Every schedule's memory against its bubble, computed when opened.
#[component(Others)]
pub(super) fn others(PlanProps { shown }: &PlanProps) -> Html {
    let open = use_state_eq(|| false);
    let chosen = use_state_eq(|| None::<usize>);
    // A dozen plans are estimated, so only do it once this is opened.
    let tried = use_memo((shown.clone(), *open), |(shown, open)| {
        open.then(|| alternatives(&shown.plan)).unwrap_or_default()
    });
    // A choice made under another plan may point past the end.
    let seen = (*chosen).filter(|place| *place < tried.len()).or_else(|| quickest(&tried));
    let ontoggle = {
        let open = open.setter();
        move |event: web_sys::Event| {
            let now = event.target_dyn_into::<Element>().is_some_and(|details| details.has_attribute("open"));
            open.set(now);
        }
    };
    // Its own schedule is the one without changes; it may be missing if its time is not achievable.
    let own = tried.iter().find(|one| one.changes.is_empty());
    html! {
        <details class="others" {ontoggle}>
            <summary>{ "Other schedules for this plan: memory against bubble" }</summary>
            if *open {
                if let Some((own, other)) = own.zip(seen.and_then(|place| tried.get(place))) {
                    { over_each_other(own, other) }
                }
                { wide("Schedules for this plan", html! { <table class="figures">
                        <thead>{ heads(&["Schedule", ">in flight", ">peak, GiB", ">bubble", ">step", "apply"]) }</thead>
                        <tbody>
                            { for tried.iter().enumerate().map(|(place, one)| {
                                let chosen = chosen.setter();
                                alternative(one, seen == Some(place), Callback::from(move |_| chosen.set(Some(place))))
                            }) }
                        </tbody>
                    </table> }) }
            }
        </details>
    }
}

/// The fastest of the others that fit.
fn quickest(tried: &[Alternative]) -> Option<usize> {
    // The plan's own is already above.
    let others = tried.iter().enumerate().filter(|(_, one)| one.fits && !one.changes.is_empty());
    others.min_by(|(_, one), (_, other)| one.step.get().total_cmp(&other.step.get())).map(|(place, _)| place)
}

/// Both steps on one time scale.
fn over_each_other(own: &Alternative, other: &Alternative) -> Html {
    let lines = [own, other].map(|one| StepTimeline::of_times(&one.times).until(one.step));
    // Both pictures need one scale, the longer step's.
    let wide = lines.iter().map(|line| line.total().get()).fold(0.0, f64::max);
    let step = |(one, line): (&Alternative, &StepTimeline)| {
        let figures =
            format!(": {}, bubble {}, peak {}", seconds(one.step), percent(one.bubble), gib(one.peak));
        html! {
            <figure class="step-of">
                <figcaption class="small">{ name(one) }<span class="soft">{ figures }</span></figcaption>
                { small(line, Some(wide)) }
            </figure>
        }
    };
    on_one_scale(wide, html! { <>{ for [own, other].into_iter().zip(&lines).map(step) }</> })
}

fn name(one: &Alternative) -> String {
    let name = schedule_name(one.name);
    match (one.changes.is_empty(), one.chunks) {
        (true, _) => format!("{name} (this plan)"),
        (_, 2..) => format!("{name}, VPP {}", one.chunks),
        _ => name.to_owned(),
    }
}

fn alternative(one: &Alternative, seen: bool, draw: Callback<MouseEvent>) -> Html {
    html! {
        <tr class={seen.then_some("chosen")}>
            <th scope="row">
                if one.changes.is_empty() {
                    { name(one) }
                } else {
                    <button type="button" class="link" aria-pressed={seen.to_string()} title="Draw it below this plan's schedule" onclick={draw}>
                        { name(one) }
                    </button>
                }
            </th>
            <td class="number">{ grouped(one.in_flight) }</td>
            <td class="number">
                { pair(gib(one.peak).replace(" GiB", ""), if one.fits { "fits" } else { "out of memory" }) }
            </td>
            <td class="number">{ percent(one.bubble) }</td>
            <td class="number">{ seconds(one.step) }</td>
            <td><Apply change={one.changes.clone()} /></td>
        </tr>
    }
}
