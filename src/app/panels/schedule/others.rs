//! The other schedules that the plan could have.

use shardscope::session::schedule::{Alternative, alternatives};
use shardscope::units::{gib, grouped, percent, seconds};
use web_sys::Element;
use yew::prelude::*;

use crate::app::panels::advice::Apply;
use crate::app::panels::panel::PlanProps;
use crate::app::widgets::{Wide, heads, pair};

/// Every schedule's memory against its bubble, worked out when opened.
#[component(Others)]
pub(super) fn others(PlanProps { shown }: &PlanProps) -> Html {
    let open = use_state_eq(|| false);
    let tried = use_memo((shown.clone(), *open), |(shown, open)| {
        open.then(|| alternatives(&shown.plan)).unwrap_or_default()
    });
    let ontoggle = {
        let open = open.setter();
        move |event: web_sys::Event| {
            let now = event.target_dyn_into::<Element>().is_some_and(|details| details.has_attribute("open"));
            open.set(now);
        }
    };
    html! {
        <details class="others" {ontoggle}>
            <summary>{ "Other schedules for this plan: memory against bubble" }</summary>
            if *open {
                <Wide label="Schedules for this plan">
                    <table class="figures">
                        <thead>{ heads(&["Schedule", ">in flight", ">peak, GiB", ">bubble", ">step", "apply"]) }</thead>
                        <tbody>{ for tried.iter().map(alternative) }</tbody>
                    </table>
                </Wide>
            }
        </details>
    }
}

fn alternative(one: &Alternative) -> Html {
    let name = match (one.changes.is_empty(), one.chunks) {
        (true, _) => format!("{} (this plan)", one.name),
        (_, 2..) => format!("{}, VPP {}", one.name, one.chunks),
        _ => one.name.to_owned(),
    };
    html! {
        <tr>
            <th scope="row">{ name }</th>
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
