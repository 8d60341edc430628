//! The map as a table, a page at a time.

use shardscope::session::map::{GpuLine, all_groups, gpu_lines, relation_name, relations};
use shardscope::session::{PtrEq, Shown};
use shardscope::units::{gib, grouped};
use web_sys::Element;
use yew::prelude::*;

use crate::app::widgets::{CopyButton, head, wide};
use crate::app::words::NONE;

/// GPUs of one page.
const PAGE: u64 = 64;

#[derive(Properties, PartialEq)]
pub(super) struct Props {
    pub shown: PtrEq<Shown>,
}

#[component(MapTable)]
pub(super) fn map_table(Props { shown }: &Props) -> Html {
    let open = use_state_eq(|| false);
    let page = use_state_eq(|| 0_u64);
    let pages = shown.plan.layout().world_size.div_ceil(PAGE).max(1);
    // Another plan may have fewer pages.
    let at = (*page).min(pages - 1);
    let ontoggle = {
        let open = open.setter();
        move |event: web_sys::Event| {
            let details = event.target_dyn_into::<Element>();
            open.set(details.is_some_and(|details| details.has_attribute("open")));
        }
    };
    let turn = |to: u64, ends: bool, label: &'static str| {
        let page = page.setter();
        html! {
            <button type="button" class="button" disabled={ends} onclick={move |_| page.set(to)}>{ label }</button>
        }
    };
    // Made when pressed: the groups of a large cluster are megabytes of text.
    let copied = {
        let shown = shown.clone();
        Callback::from(move |()| all_groups(&shown.plan))
    };
    html! {
        <div class="map-table">
            <CopyButton label="Copy all groups as text" text={copied} />
            <details {ontoggle}>
                <summary>{ "Show as a table" }</summary>
                // A closed table costs nothing, whatever the cluster.
                if *open {
                    { wide("The GPUs and their groups", html! { { table(shown, at * PAGE) } }) }
                    if pages > 1 {
                        <p class="pages">
                            { turn(at.saturating_sub(1), at == 0, "Previous") }
                            <span class="small">{ format!("page {} of {}", grouped(at + 1), grouped(pages)) }</span>
                            { turn(at + 1, at + 1 == pages, "Next") }
                        </p>
                    }
                }
            </details>
        </div>
    }
}

fn table(shown: &Shown, first: u64) -> Html {
    html! {
        <table class="figures memory">
            <thead>
                <tr>
                    { head("GPU") }
                    { head(">rank") }
                    { head(">stage") }
                    { for relations(&shown.plan).into_iter().map(|kind| html! {
                        <th class="number" scope="col">{ format!("{} group", relation_name(kind)) }</th>
                    }) }
                    { head(">peak memory") }
                </tr>
            </thead>
            <tbody>{ for gpu_lines(&shown.plan, first, PAGE).iter().map(|line| row(shown, line)) }</tbody>
        </table>
    }
}

fn row(shown: &Shown, line: &GpuLine) -> Html {
    let figure = |figure: String| html! { <td class="number">{ figure }</td> };
    html! {
        <tr>
            <th class="mono" scope="row">{ &line.label }</th>
            { figure(grouped(line.rank.get())) }
            { figure(line.stage.to_string()) }
            { for line.groups.iter().map(|group| {
                figure(group.map_or_else(|| NONE.to_owned(), grouped))
            }) }
            { figure(shown.memory_of(line.rank).map(gib).unwrap_or_default()) }
        </tr>
    }
}
