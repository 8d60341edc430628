//! The details of an answer. Each is one file with its component, its words and its step of the tour; a new one needs
//! that file, a line in the list here, its name in `panel_id.rs`, and its style sheet.

mod advice;
mod around;
mod communication;
mod compare;
mod contribute;
mod front;
mod gemms;
mod layers;
mod layouts;
mod map;
mod map_chips;
mod memory;
mod mini_map;
mod overview;
mod own_figures;
mod own_run;
mod panel;
mod phase_bars;
mod question;
mod rewritten;
mod schedule;
mod search;
mod settings;
mod stage_bars;
mod step_bar;
mod taken;
mod time;
mod tool;
mod vary;
mod why_not;

pub(crate) use front::Front;
pub(crate) use layouts::Layouts;
pub(crate) use search::none_fits;

use shardscope::session::{PtrEq, Shown};
use yew::prelude::*;

use super::panel_id::PanelId;
use super::widgets::Tab;
use panel::{Panel, Story};

/// Every panel.
const PANELS: [&Panel; 13] = [
    &overview::PANEL,
    &advice::PANEL,
    &memory::PANEL,
    &time::PANEL,
    &schedule::PANEL,
    &communication::PANEL,
    &map::PANEL,
    &layers::PANEL,
    &gemms::PANEL,
    &search::PANEL,
    &settings::PANEL,
    &compare::PANEL,
    &tool::PANEL,
];

fn panel(id: PanelId) -> &'static Panel {
    // Every id has a panel; the fallback spares a panic.
    PANELS.into_iter().find(|panel| panel.id == id).unwrap_or(&overview::PANEL)
}

/// The panels of a plan, the comparison only with a pinned one.
pub(crate) fn ids(pinned: bool) -> impl Iterator<Item = PanelId> {
    PanelId::all().filter(move |id| pinned || *id != PanelId::Compare)
}

/// Their tabs.
pub(crate) fn tabs(pinned: bool) -> Vec<Tab> {
    // A panel without a tab is reached by a link from another.
    ids(pinned).filter_map(|id| Some(Tab { id: id.name(), name: panel(id).tab? })).collect()
}

/// The steps of the tour that panels have.
pub(crate) fn stories() -> impl Iterator<Item = (PanelId, Story)> {
    PANELS.into_iter().filter_map(|panel| Some((panel.id, panel.story?)))
}

#[derive(Properties, PartialEq)]
pub(crate) struct ViewProps {
    pub panel: PanelId,
    pub shown: PtrEq<Shown>,
}

/// One panel of a plan, redrawn only for another plan or for what it uses from the context.
#[component(PanelView)]
pub(crate) fn panel_view(props: &ViewProps) -> Html {
    (panel(props.panel).view)(props.shown.clone())
}
