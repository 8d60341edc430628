//! Other layouts for the same model on the same machines, tried in slices so that the page stays quick.

use std::rc::Rc;

use shardscope::quantity::grouped;
use yew::prelude::*;

use super::layouts::{Front, Layouts};
use super::panel::{Panel, PlanProps};
use crate::app::action::Action;
use crate::app::context::{AppContext, use_dispatch};
use crate::app::panel_id::PanelId;
use crate::app::ui::Found;
use crate::app::widgets::{Section, Term};

pub(super) const PANEL: Panel = Panel {
    id: PanelId::Search,
    tab: Some("Search"),
    view: |shown| html! { <Search {shown} /> },
    story: None,
};

#[component(Search)]
fn search(PlanProps { .. }: &PlanProps) -> Html {
    let dispatch = use_dispatch();
    let Some(app) = use_context::<AppContext>() else { return html!() };
    let (searching, found) = (app.ui.searching, app.ui.found.clone());
    let label = match (searching, found.is_some()) {
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
            { found.map(|found| html! { <Results {found} {searching} /> }) }
        </Section>
    }
}

#[derive(Properties, PartialEq)]
struct ResultsProps {
    found: Rc<Found>,
    searching: bool,
}

#[component(Results)]
fn results(props: &ResultsProps) -> Html {
    let Found { tried, all, refused, too_large, best, frontier } = &*props.found;
    let fit = tried.saturating_sub(*refused).saturating_sub(*too_large);
    html! {
        <>
            <p class="small soft searched" role="status">
                { if props.searching { "Searching: " } else { "" } }
                { format!(
                    "{} of {} combinations; {} invalid, {} out of memory, {} fit",
                    grouped(*tried), grouped(*all), grouped(*refused), grouped(*too_large), grouped(fit)
                ) }
            </p>
            if props.searching {
                <progress class="progress" aria-label="Search" max={all.to_string()} value={tried.to_string()} />
            }
            if best.is_empty() {
                if !props.searching {
                    <p>{ "None of them fits." }</p>
                }
            } else {
                <Layouts outcomes={best.clone()} />
                <Front outcomes={frontier.clone()} />
            }
        </>
    }
}
