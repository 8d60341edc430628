//! Other layouts for the same model on the same machines, evaluated in slices so that the page stays responsive.

use shardscope::units::grouped;
use yew::prelude::*;

use super::around::Around;
use super::front::Front;
use super::layouts::Layouts;
use super::panel::{Panel, PlanProps};
use super::question::Questions;
use super::taken::Taken;
use super::vary::Vary;
use super::why_not::WhyNot;
use crate::app::action::Action;
use crate::app::beside::LOST;
use crate::app::context::{AppContext, use_dispatch};
use crate::app::panel_id::PanelId;
use crate::app::ui::Search;
use crate::app::widgets::{Term, section};

pub(super) const PANEL: Panel = Panel {
    id: PanelId::Search,
    tab: Some("Search"),
    view: |shown| html! { <SearchPanel {shown} /> },
    story: None,
};

#[component(SearchPanel)]
fn search_panel(PlanProps { .. }: &PlanProps) -> Html {
    let dispatch = use_dispatch();
    let Some(app) = use_context::<AppContext>() else { return html!() };
    let search = app.ui.search.clone();
    let searching = search.as_ref().is_some_and(|search| search.going);
    let label = match (searching, search.is_some()) {
        (true, _) => "Stop",
        (false, true) => "Search again",
        (false, false) => "Search",
    };
    let about = html! {
        <>
            { "All valid TP × PP × CP × EP × VPP layouts for the same model and GPUs, with micro-batch, " }
            <Term name="recompute">{ "recomputation" }</Term>{ " and " }
            <Term name="distributed optimizer">{ "sharding" }</Term>{ ". Each is checked; the fastest that " }
            <Term name="fits">{ "fit" }</Term>{ " are listed." }
        </>
    };
    html! {
        <div>
            { section("search", "", "Layout search", about, html! { <><button type="button" class="button" onclick={move |_| dispatch.emit(Action::Search(!searching))}>
                    { label }
                </button>
                <Vary />
                { search.as_ref().map(results) }</> }) }
            <Questions />
        </div>
    }
}

fn results(search: &Search) -> Html {
    if search.is_lost {
        return html! { <p role="alert">{ LOST }</p> };
    }
    let Some(found) = &search.found else {
        return html! { <p class="small soft" role="status">{ "Searching…" }</p> };
    };
    // Every layout ends in one of these four; `tried` counts work steps.
    let decided = found.refused + found.too_large + found.slower + found.estimated;
    html! {
        <>
            <p class="small soft searched" role="status">
                { if search.going { "Searching: " } else { "" } }
                { format!(
                    "{} layouts checked: {} invalid, {} out of memory, {} ruled out by a bound on step time, {} estimated",
                    grouped(decided), grouped(found.refused), grouped(found.too_large), grouped(found.slower), grouped(found.estimated)
                ) }
            </p>
            if !found.reasons.is_empty() {
                <details class="small reasons">
                    <summary>{ "Invalid by reason" }</summary>
                    <ul class="refusals">
                        { for found.reasons.iter().map(|(reason, count)| html! { <li>{ format!("{}: {reason}", grouped(*count)) }</li> }) }
                    </ul>
                </details>
            }
            // `all` grows while the search finds more to do, so the bar may move back.
            if search.going {
                <progress class="progress" aria-label="Search" max={found.all.to_string()} value={found.tried.to_string()} />
            }
            if found.best.is_empty() {
                // While it is running, an empty list means nothing.
                if !search.going {
                    <p>{ none_fits(search) }</p>
                }
            } else {
                <Front search={search.clone()} found={found.clone()} />
                <Layouts search={search.clone()} layouts={found.listed().to_vec()} />
                <Taken search={search.clone()} found={found.clone()} />
            }
            // Whether anything fits or not; if nothing does, what would help matters most.
            if !search.going || !found.best.is_empty() {
                <WhyNot search={search.clone()} />
            }
            <Around search={search.clone()} found={found.clone()} />
        </>
    }
}

/// States that nothing fits, and what would.
pub(crate) fn none_fits(search: &Search) -> String {
    let cluster = search.base.shown.plan.cluster();
    let (gpus, name) = (cluster.gpus(), &cluster.accelerator.name);
    match search.found.as_ref().and_then(|found| found.needs) {
        // Model replicas need buffers for reducing gradients, so fewer accelerators may hold what more do not.
        Some(needs) if needs <= gpus => {
            format!(
                "No layout fits on all {} × {name}; one on {} of them does.",
                grouped(gpus),
                grouped(needs)
            )
        }
        Some(needs) => format!(
            "No layout fits on {} × {name}: the run needs at least {} of them.",
            grouped(gpus),
            grouped(needs)
        ),
        None => format!("No layout fits on {} × {name}.", grouped(gpus)),
    }
}
