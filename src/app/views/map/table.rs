//! The map as a table, a page at a time.

use shardscope::quantity::gib;
use shardscope::session::map::{GpuLine, all_groups, gpu_lines, relation_name, relations};
use shardscope::session::{Held, Shown};
use yew::prelude::*;

use crate::app::parts::{Copy, wide};

/// GPUs of one page.
const PAGE: u64 = 64;

#[derive(Properties, PartialEq)]
pub(crate) struct Props {
    pub shown: Held<Shown>,
}

#[component]
pub(crate) fn AsTable(props: &Props) -> Html {
    let shown = &props.shown;
    let open = use_state(|| false);
    let page = use_state(|| 0_u64);
    let gpus = shown.plan.layout().world_size;
    let pages = gpus.div_ceil(PAGE).max(1);
    let at = (*page).min(pages - 1);
    let ontoggle = {
        let open = open.clone();
        move |event: Event| {
            let now = event
                .target_dyn_into::<web_sys::Element>()
                .is_some_and(|details| details.has_attribute("open"));
            open.set(now);
        }
    };
    let turn = |to: u64| {
        let page = page.clone();
        move |_| page.set(to)
    };
    let text = {
        let shown = shown.clone();
        Callback::from(move |()| all_groups(&shown.plan))
    };
    html! {
        <div class="map-table">
            <Copy {text} label="Copy all groups as text" />
            <details {ontoggle}>
                <summary>{ "The same as a table" }</summary>
                if *open {
                    { wide("The GPUs and their groups", table(shown, at * PAGE)) }
                    if pages > 1 {
                        <p class="pages">
                            <button type="button" class="button" disabled={at == 0} onclick={turn(at.saturating_sub(1))}>{ "Before" }</button>
                            <span class="small">{ format!("page {} of {pages}", at + 1) }</span>
                            <button type="button" class="button" disabled={at + 1 == pages} onclick={turn(at + 1)}>{ "After" }</button>
                        </p>
                    }
                }
            </details>
        </div>
    }
}

fn table(shown: &Held<Shown>, first: u64) -> Html {
    let kinds = relations(&shown.plan);
    let row = |line: &GpuLine| {
        html! {
            <tr>
                <th scope="row" class="mono">{ &line.label }</th>
                <td class="number">{ line.rank.get().to_string() }</td>
                <td class="number">{ line.stage.to_string() }</td>
                { for line.groups.iter().map(|group| html! { <td class="number">{ group.map_or_else(|| "–".to_owned(), |group| group.to_string()) }</td> }) }
                <td class="number">{ shown.memory_of(line.rank).map(gib).unwrap_or_default() }</td>
            </tr>
        }
    };
    html! {
        <table class="figures memory">
            <thead><tr>
                <th scope="col">{ "GPU" }</th><th scope="col" class="number">{ "rank" }</th><th scope="col" class="number">{ "stage" }</th>
                { for kinds.iter().map(|kind| html! { <th scope="col" class="number">{ format!("{} group", relation_name(*kind)) }</th> }) }
                <th scope="col" class="number">{ "memory" }</th>
            </tr></thead>
            <tbody>{ for gpu_lines(&shown.plan, first, PAGE).iter().map(row) }</tbody>
        </table>
    }
}
