//! Layouts that a search found, as a table or a short list. Selecting one shows its plan and keeps the list.

use shardscope::session::beside::{DEGREES, Layout};
use shardscope::units::{Bytes, Quantity, decimal, gib, seconds};
use yew::prelude::*;

use crate::app::action::Action;
use crate::app::context::{send, use_dispatch};
use crate::app::ui::Search;
use crate::app::widgets::wide;

#[derive(Properties, PartialEq)]
pub(crate) struct Props {
    pub search: Search,
    /// The fastest first.
    pub layouts: Vec<Layout>,
    /// Whether there is little room: a row is a button then.
    #[prop_or_default]
    pub compact: bool,
}

/// A share of a bar's width.
pub(super) fn bar(share: f64, class: &'static str) -> Html {
    html! {
        <svg class={classes!("bar", class)} aria-hidden="true">
            // A tight peak may exceed the capacity; the bar ends at its frame.
            <rect width={decimal(share.min(1.0) * 100.0, 1) + "%"} height="100%" />
        </svg>
    }
}

/// The layouts with their sizes in separate columns; what differs from the plan searched is bold.
#[component(Layouts)]
pub(crate) fn layouts(props: &Props) -> Html {
    let Props { search, layouts, compact } = props;
    let capacity = capacity(search).number().max(1.0);
    if *compact {
        return html! {
            <ol class="layouts">
                { for layouts.iter().map(|one| html! { <li><Row search={search.clone()} layout={one.clone()} /></li> }) }
            </ol>
        };
    }
    let slowest = layouts.iter().map(|one| one.step().get()).fold(f64::MIN_POSITIVE, f64::max);
    let (base, recomputed) = Layout::sizes_of(&search.base.shown.plan);
    html! {
        { wide("Layouts found", html! { <table class="figures layout-table">
                <thead>
                    <tr>
                        { for DEGREES.iter().map(|name| html! { <th class="number" scope="col">{ *name }</th> }) }
                        <th scope="col">{ "recompute" }</th>
                        <th scope="col" colspan="2">{ "step" }</th>
                        <th scope="col" colspan="2">{ "peak" }</th>
                        <th scope="col"><span class="hidden">{ "apply" }</span></th>
                    </tr>
                </thead>
                <tbody>
                    { for layouts.iter().map(|one| html! {
                        <tr class={(one.changes == search.chosen).then_some("chosen")}>
                            { for one.degrees.into_iter().enumerate().map(|(place, size)| {
                                let differs = base.get(place) != Some(&size);
                                html! { <td class={classes!("number", differs.then_some("strong"))}>{ size }</td> }
                            }) }
                            <td class={(one.recompute != recomputed).then_some("strong")}>{ one.recompute.name() }</td>
                            <td class="bar-cell">{ bar(one.step().get() / slowest, "step-time") }</td>
                            <td class="number strong">{ seconds(one.step()) }</td>
                            <td class="bar-cell">{ bar(one.peak().number() / capacity, "peak-bar") }</td>
                            <td class="number">
                                { gib(one.peak()) }
                                if one.tight { <span class="tight-mark">{ " tight" }</span> }
                            </td>
                            <td><Take search={search.clone()} layout={one.clone()} /></td>
                        </tr>
                    }) }
                </tbody>
            </table> }) }
    }
}

/// The memory of the accelerator of the plan searched.
pub(super) fn capacity(search: &Search) -> Bytes {
    search.base.shown.plan.cluster().accelerator.memory
}

/// What a layout changes of the plan searched, in words.
pub(super) fn change(layout: &Layout) -> String {
    let one = |(name, value): &(String, String)| match value.as_str() {
        "" => format!("without {name}"),
        value => format!("{name} = {value}"),
    };
    match layout.changes.as_slice() {
        [] => "the starting plan".to_owned(),
        changes => changes.iter().map(one).collect::<Vec<_>>().join(", "),
    }
}

#[derive(Properties, PartialEq)]
struct RowProps {
    search: Search,
    layout: Layout,
}

/// A layout as one button.
#[component(Row)]
fn row(RowProps { search, layout }: &RowProps) -> Html {
    let dispatch = use_dispatch();
    let changes = layout.changes.clone();
    let share = layout.peak().number() / capacity(search).number().max(1.0);
    html! {
        <button
            type="button"
            class="layout"
            aria-pressed={(layout.changes == search.chosen).to_string()}
            title={change(layout)}
            onclick={send(&dispatch, move || Action::Look(changes.clone()))}
        >
            <span>{ layout.words() }</span>
            <strong>{ seconds(layout.step()) }</strong>
            { bar(share, "peak-bar") }
            <span class="soft">{ gib(layout.peak()) }{ if layout.tight { ", tight" } else { "" } }</span>
        </button>
    }
}

/// The button that shows a layout; text if it is already shown.
#[component(Take)]
fn take(RowProps { search, layout }: &RowProps) -> Html {
    let dispatch = use_dispatch();
    // By changes: they name a layout of this search, and equal ones are the same.
    if layout.changes == search.chosen {
        return html! { <span class="soft">{ "shown" }</span> };
    }
    let changes = layout.changes.clone();
    html! {
        <button
            type="button"
            class="button"
            title={change(layout)}
            onclick={send(&dispatch, move || Action::Look(changes.clone()))}
        >{ "Apply" }</button>
    }
}
