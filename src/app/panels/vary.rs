//! How far searches vary each dimension, as a form: as in the plan, open, or between two sizes.

use shardscope::search::Dimension;
use shardscope::session::{Extent, Varied};
use yew::prelude::*;

use crate::app::action::Action;
use crate::app::browser;
use crate::app::context::{AppContext, send, use_dispatch};
use crate::app::widgets::Options;

/// Ways to vary a dimension, as named in the lists.
const FIXED: &str = "as in the plan";
const OPEN: &str = "any";
const BETWEEN: &str = "between";
/// Sizes that a range begins with.
const FIRST: (u64, u64) = (1, 8);

/// The form, closed until somebody opens it.
#[component(Vary)]
pub(super) fn vary() -> Html {
    let dispatch = use_dispatch();
    let Some(app) = use_context::<AppContext>() else { return html!() };
    let vary = &app.ui.vary;
    let has_experts = app.session.shown.as_ref().is_some_and(|shown| shown.plan.model().experts.is_some());
    let of_experts = |dimension| matches!(dimension, Dimension::Expert | Dimension::ExpertTensor);
    let shown = Dimension::NAMED.into_iter().map(|(dimension, _)| dimension);
    let shown = shown.filter(|dimension| has_experts || !of_experts(*dimension));
    let stated = vary.stated();
    html! {
        <details class="vary">
            <summary>
                { "What is varied" }
                if stated > 0 { { format!(" ({stated} set by you)") } }
            </summary>
            <div class="dimensions">
                { for shown.map(|dimension| html! { <Row {dimension} vary={vary.clone()} /> }) }
            </div>
            if stated > 0 {
                <button type="button" class="button quiet" onclick={send(&dispatch, || Action::Vary(Varied::default()))}>
                    { "Reset" }
                </button>
            }
        </details>
    }
}

#[derive(Properties, PartialEq)]
struct RowProps {
    dimension: Dimension,
    vary: Varied,
}

/// One dimension.
#[component(Row)]
fn row(RowProps { dimension, vary }: &RowProps) -> Html {
    let dispatch = use_dispatch();
    let dimension = *dimension;
    let extent = vary.get(dimension);
    let set = {
        let vary = vary.clone();
        Callback::from(move |extent| {
            // An empty range is not accepted, and the fields show the current one.
            if let Ok(vary) = vary.clone().with(dimension, extent) {
                dispatch.emit(Action::Vary(vary));
            }
        })
    };
    let way = {
        let set = set.clone();
        move |name: String| {
            set.emit(match name.as_str() {
                FIXED => Extent::Fixed,
                BETWEEN => Extent::Between(FIRST.0, FIRST.1),
                _ => Extent::Open,
            });
        }
    };
    let (chosen, sizes) = match extent {
        Extent::Fixed => (FIXED, None),
        Extent::Open => (OPEN, None),
        Extent::Exactly(size) => (BETWEEN, Some((size, size))),
        Extent::Between(least, most) => (BETWEEN, Some((least, most))),
    };
    let mut names = vec![AttrValue::Static(OPEN), AttrValue::Static(FIXED)];
    if dimension.has_sizes() {
        names.push(AttrValue::Static(BETWEEN));
    }
    let size = |label: String, size: u64, put: fn((u64, u64), u64) -> (u64, u64)| {
        let set = set.clone();
        let onchange = move |event: Event| {
            let typed = browser::value_of(&event).trim().parse();
            if let (Ok(typed), Some(sizes)) = (typed, sizes) {
                let (least, most) = put(sizes, typed);
                set.emit(Extent::Between(least, most));
            }
        };
        html! { <input class="field" inputmode="numeric" autocomplete="off" aria-label={label} value={size.to_string()} {onchange} /> }
    };
    let about = dimension.about();
    html! {
        <div class="varied">
            <span class={(extent != Varied::usual(dimension)).then_some("strong")}>{ about }</span>
            <Options {names} {chosen} label={about} onchange={way} />
            if let Some((least, most)) = sizes {
                <span class="sizes">
                    { size(format!("{about}, least"), least, |(_, most), typed| (typed, most.max(typed))) }
                    { "to" }
                    { size(format!("{about}, most"), most, |(least, _), typed| (least.min(typed), typed)) }
                </span>
            }
        </div>
    }
}
