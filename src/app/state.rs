//! The one state of the page and its reducer.

use std::rc::Rc;

use shardscope::session::{Event, State, apply};

use super::action::Action;
use super::panel_id::PanelId;
use super::ui::{InputTab, UiState};

/// Everything the page is drawn from.
#[derive(Clone)]
pub(crate) struct AppState {
    /// What the reader gave, and the engine's answer.
    pub session: Rc<State>,
    /// What is open and chosen on the page.
    pub ui: UiState,
}

impl PartialEq for AppState {
    fn eq(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.session, &other.session) && self.ui == other.ui
    }
}

impl AppState {
    /// `event` reaches the session; what hangs on the plan follows.
    fn apply(&mut self, event: Event) {
        let entries = self.session.entries;
        let before = self.session.shown.clone();
        self.session = Rc::new(apply((*self.session).clone(), event));
        let ui = &mut self.ui;
        if self.session.shown != before {
            ui.reading = false;
            ui.searching = false;
            ui.found = None;
            // Another plan taken whole is no change of the last one.
            ui.before = before.filter(|_| self.session.entries == entries && self.session.shown.is_some());
        }
        if self.session.pinned.is_none() && ui.panel == PanelId::Compare {
            ui.panel = PanelId::Overview;
        }
    }
}

impl yew::Reducible for AppState {
    type Action = Action;

    fn reduce(self: Rc<Self>, action: Action) -> Rc<Self> {
        let mut next = (*self).clone();
        let ui = &mut next.ui;
        match action {
            Action::Session(event) => {
                if matches!(event, Event::Pin) {
                    ui.before = None;
                }
                next.apply(event);
            }
            Action::Settle => {
                next.apply(Event::Settle);
                next.ui.reading = false;
            }
            Action::Reading => ui.reading = true,
            Action::Panel(panel) => ui.panel = panel,
            Action::Input(tab) => ui.input = tab,
            Action::Begin(hand) => {
                ui.panel = PanelId::Overview;
                ui.chosen = false;
                ui.input = if hand.is_settings_alone() { ui.input } else { InputTab::Script };
                next.apply(Event::Open(hand));
            }
            Action::Choose(choice) => {
                ui.choice = choice;
                ui.chosen = true;
            }
            Action::Share(open) => ui.sharing = open,
            Action::Theme(theme) => {
                ui.theme = theme;
                theme.keep();
            }
            Action::Stage(stage) => ui.stage = stage,
            Action::Explain(why) => ui.why = Some(why),
            Action::Tour(step) => ui.tour = step,
            Action::Search(on) => {
                ui.searching = on;
                if on {
                    ui.found = None;
                }
            }
            Action::Found(found) => {
                ui.searching = ui.searching && found.tried < found.all;
                ui.found = Some(found);
            }
            Action::Print(on) => ui.printing = on,
        }
        Rc::new(next)
    }
}
