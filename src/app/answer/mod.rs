//! The answer: the verdict that stays in view, the best change, and below it one detail at a time.

mod action;
mod missing;
mod verdict;

pub(crate) use missing::Missing;
pub(crate) use verdict::Verdict;

use shardscope::session::State;
use yew::prelude::*;

use super::action::Action;
use super::beside::LOST;
use super::context::{AppContext, send, use_dispatch};
use super::panel_id::PanelId;
use super::panels::{self, PanelView};
use super::widgets::Tabs;
use action::BestAction;

/// The right side of the page.
#[component(Answer)]
pub(crate) fn answer() -> Html {
    let dispatch = use_dispatch();
    let Some(app) = use_context::<AppContext>() else { return html!() };
    let session: &State = &app.session;
    let lost = app.ui.reader_lost.then(|| {
        let again = send(&dispatch, || Action::Read);
        html! {
            <p class="refused" role="alert">
                { LOST }{ " " }
                <button type="button" class="button" onclick={again}>{ "Try again" }</button>
            </p>
        }
    });
    // Without a plan the head and tabs have nothing to show, and what is missing takes their place.
    let Some(shown) = &session.shown else {
        return html! {
            <div id="answer" class="answer-side">
                { lost }
                <Missing session={app.session.clone()} reading={app.ui.reading} />
            </div>
        };
    };
    let (panel, pinned) = (app.ui.panel, session.pinned.is_some());
    let overview = panel == PanelId::Overview;
    let choose = move |id: &'static str| {
        if let Some(panel) = PanelId::named(id) {
            dispatch.emit(Action::Panel(panel));
        }
    };
    // On paper the panels follow each other.
    let on_paper = app.ui.printing.then(|| {
        // Not the search, which is a list in progress, nor the panel that is already shown.
        let rest = panels::ids(pinned).filter(move |id| *id != panel && *id != PanelId::Search);
        rest.map(|panel| html! { <PanelView key={panel.name()} {panel} shown={shown.clone()} /> })
    });
    html! {
        <div id="answer" class="answer-side">
            <div class="answer-head">
                { lost }
                <Verdict
                    shown={shown.clone()}
                    before={app.ui.before.clone()}
                    big={overview}
                    waits={!session.is_settled() || app.ui.reading}
                />
                <BestAction
                    shown={shown.clone()}
                    input={session.answered().clone()}
                    search={app.ui.search.clone()}
                    // A search that ends in another plan would replace this one: its suggestions wait.
                    follows={app.is_followed()}
                    brief={!overview}
                    waits={!app.ui.all_drawn}
                />
                <Tabs
                    label="Details"
                    tabs={panels::tabs(pinned)}
                    chosen={panel.name()}
                    onchoose={choose}
                />
            </div>
            <div
                class="answer-body"
                role="tabpanel"
                aria-labelledby={format!("{}-tab", panel.name())}
                tabindex="-1"
            >
                if app.ui.all_drawn {
                    <PanelView {panel} shown={shown.clone()} />
                }
                { for on_paper.into_iter().flatten() }
            </div>
        </div>
    }
}
