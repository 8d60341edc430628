//! The input: a script, or a model and GPUs, or an example; and below it the settings that are tried most.

mod best;
mod combobox;
mod diagnostics;
mod drop;
mod editor;
mod examples;
mod model;
mod plan_bar;
mod questions;
mod script;

pub(crate) use examples::Published;
pub(crate) use questions::Questions;

use yew::prelude::*;

use super::action::Action;
use super::context::{AppContext, use_dispatch};
use super::own_files::OwnFiles;
use super::panel_id::PanelId;
use super::ui::InputTab;
use super::widgets::{Tab, Tabs};
use drop::use_drop;
use examples::Examples;
use model::Model;
use plan_bar::PlanBar;
use script::Script;

const TABS: [(InputTab, Tab); 3] = [
    (InputTab::Script, Tab { id: "script-input", name: "Script" }),
    (InputTab::Model, Tab { id: "model-input", name: "Model + GPUs" }),
    (InputTab::Examples, Tab { id: "examples", name: "Examples" }),
];

/// The left side of the page.
#[component(Input)]
pub(crate) fn input() -> Html {
    let dispatch = use_dispatch();
    let hovered = use_drop();
    let Some(app) = use_context::<AppContext>() else { return html!() };
    let chosen = TABS.iter().find(|(tab, _)| *tab == app.ui.input).map_or("", |(_, tab)| tab.id);
    let choose = {
        let dispatch = dispatch.clone();
        move |id: &'static str| {
            if let Some((tab, _)) = TABS.iter().find(|(_, tab)| tab.id == id) {
                dispatch.emit(Action::Input(*tab));
            }
        }
    };
    let session = &app.session;
    let inside = match app.ui.input {
        InputTab::Script => html! {
            <Script
                input={session.input.clone()}
                answer={session.answer.clone()}
                has_plan={session.shown.is_some()}
                reading={app.ui.reading}
            />
        },
        InputTab::Model => html! { <Model /> },
        InputTab::Examples => html! { <Examples /> },
    };
    html! {
        <div class={classes!("input-side", hovered.then_some("dropping"))}>
            <Tabs
                label="What runs"
                tabs={TABS.map(|(_, tab)| tab).to_vec()}
                {chosen}
                onchoose={choose}
            />
            // Under Time where that is open.
            if session.shown.is_none() || app.ui.panel != PanelId::Time {
                <OwnFiles />
            }
            <div id={chosen} class="input-body" role="tabpanel" aria-labelledby={format!("{chosen}-tab")}>
                { inside }
            </div>
            if let Some(shown) = &session.shown {
                <PlanBar
                    shown={shown.clone()}
                    refused={session.refused.clone()}
                    can_undo={session.steps.can_undo()}
                    can_redo={session.steps.can_redo()}
                    pinned={session.pinned.is_some()}
                />
            }
            if hovered {
                <p class="drop-here">{ "Drop a script, its configs, or what the tools of a run wrote" }</p>
            }
        </div>
    }
}
