//! Other layouts for the same model on the same machines, tried in slices so that the page stays quick.

use shardscope::units::grouped;
use yew::prelude::*;

use super::front::Front;
use super::layouts::Layouts;
use super::panel::{Panel, PlanProps};
use crate::app::action::Action;
use crate::app::context::{AppContext, use_dispatch};
use crate::app::panel_id::PanelId;
use crate::app::ui::Search;
use crate::app::widgets::{Section, Term};

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
            <Term name="distributed optimizer">{ "sharding" }</Term>{ "; the fastest that " }
            <Term name="fits">{ "fit" }</Term>{ "." }
        </>
    };
    html! {
        <Section id="search" title="Layout search" {about}>
            <button type="button" class="button" onclick={move |_| dispatch.emit(Action::Search(!searching))}>
                { label }
            </button>
            { search.map(|search| html! { <Results {search} /> }) }
        </Section>
    }
}

#[derive(Properties, PartialEq)]
struct ResultsProps {
    search: Search,
}

#[component(Results)]
fn results(ResultsProps { search }: &ResultsProps) -> Html {
    let Some(found) = &search.found else {
        return html! { <p class="small soft" role="status">{ "Searching…" }</p> };
    };
    let (tried, all, refused, too_large) = (found.tried, found.all, found.refused, found.too_large);
    let fit = tried.saturating_sub(refused).saturating_sub(too_large);
    html! {
        <>
            <p class="small soft searched" role="status">
                { if search.going { "Searching: " } else { "" } }
                { format!(
                    "{} of {} combinations; {} invalid, {} out of memory, {} fit",
                    grouped(tried), grouped(all), grouped(refused), grouped(too_large), grouped(fit)
                ) }
            </p>
            if search.going {
                <progress class="progress" aria-label="Search" max={all.to_string()} value={tried.to_string()} />
            }
            if found.best.is_empty() {
                if !search.going {
                    <p>{ "None of them fits." }</p>
                }
            } else {
                <Front search={search.clone()} found={found.clone()} />
                <Layouts search={search.clone()} layouts={found.listed().to_vec()} />
            }
        </>
    }
}
