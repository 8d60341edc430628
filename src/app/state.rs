//! The one state of the page and its reducer.

use std::rc::Rc;

use shardscope::session::reader::ReadTask;
use shardscope::session::texts::wanted;
use shardscope::session::{
    Asked, EXAMPLE, Event, Pinned, PtrEq, State, UserInput, apply, model_alone, start,
};

use super::action::Action;
use super::browser::is_embedded;
use super::panel_id::PanelId;
use super::question::Inquired;
use super::ui::{InputTab, Search, UiState};

/// Everything the page is drawn from.
#[derive(Clone)]
pub(crate) struct AppState {
    /// The user's input, and the engine's answer.
    pub session: Rc<State>,
    /// What is open and chosen on the page.
    pub ui: UiState,
    /// What must be read before the first of `waiting` can run.
    pub wanted: Option<PtrEq<ReadTask>>,
    /// Actions that wait for it, in order.
    waiting: Vec<Action>,
}

// `waiting` is left out, since nothing that is drawn depends on it.
impl PartialEq for AppState {
    fn eq(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.session, &other.session) && self.ui == other.ui && self.wanted == other.wanted
    }
}

impl AppState {
    /// `session` with `ui`, and nothing pending.
    pub(super) fn new(session: State, ui: UiState) -> Self {
        Self { session: Rc::new(session), ui, wanted: None, waiting: Vec::new() }
    }

    /// Applies `event` to the session, and updates what depends on the plan.
    fn apply(&mut self, event: Event) {
        let entries = self.session.entries;
        let starts = matches!(event, Event::Start(_));
        // Compared by identity below: each answer is a separate value.
        let before = self.session.shown.clone();
        self.session = Rc::new(apply((*self.session).clone(), event));
        let ui = &mut self.ui;
        if self.session.shown != before {
            ui.reading = false;
            // Both belong to the plan that was shown.
            (ui.search, ui.inquiry) = (None, None);
            // Only the event that starts a plan from the form keeps the plan followed.
            ui.follows &= starts;
            // A replaced plan, or a text pasted over the last one, is not a change of it.
            let changed = self.session.entries == entries && !self.session.is_another;
            ui.before = before.filter(|_| changed && self.session.shown.is_some());
        }
        // The panel disappears with the plan that it compares with.
        if self.session.pinned.is_none() && ui.panel == PanelId::Compare {
            ui.panel = PanelId::Overview;
        }
    }
}

impl AppState {
    /// A search begins by itself for a plan made from a model and GPUs, if nothing fits yet (single changes may not
    /// suffice), and if the user opens its tab.
    ///
    /// This is a rule of the state rather than an effect of a component: an effect that watches "wants a search"
    /// would miss a plan that replaces another one between two renderings.
    pub(super) fn search_by_itself(&mut self) {
        let Some(shown) = &self.session.shown else { return };
        let looked_at = self.ui.panel == PanelId::Search;
        let wanted = self.is_of_model_and_gpus() || shown.is_out_of_memory() || looked_at;
        // Not in a frame, which only displays.
        if wanted && self.ui.search.is_none() && !is_embedded() {
            self.search(true);
        }
    }

    /// Whether the plan was made of a model and a number of GPUs.
    pub(super) fn is_of_model_and_gpus(&self) -> bool {
        self.ui.chosen && self.session.input.is_settings_alone()
    }

    /// Whether the fastest layout replaces the plan shown when its search ends.
    pub(super) fn is_followed(&self) -> bool {
        let goes_on = self.ui.search.as_ref().is_some_and(|search| search.going);
        self.ui.follows && goes_on && self.is_of_model_and_gpus()
    }

    /// A model and GPUs ask for the fastest layout, so once the search has ended, that is the answer.
    fn follow(&mut self) {
        let Some(search) = self.ui.search.as_ref().filter(|search| !search.going) else { return };
        // Consumed: a plan is followed once, and the search that led there starts no other.
        if std::mem::take(&mut self.ui.follows)
            && self.is_of_model_and_gpus()
            && let Some(best) = search.found.as_ref().and_then(|found| found.best.first())
        {
            self.look(best.changes.clone());
            // Not a change by the user.
            self.ui.before = None;
        }
    }

    /// Takes up the model and GPUs of the form, if nothing of the user's own would be lost.
    fn begin_with_choice(&mut self) {
        let own = &self.session.input;
        // A model that was the only input appears in the form.
        let named = model_alone(own).map(str::to_owned);
        let is_named = named.is_some();
        if let Some(model) = named {
            self.ui.choice.model = model;
        }
        // The user's own script or settings are not replaced by a form's defaults.
        if (is_named || *own == UserInput::from_text(EXAMPLE) || *own == UserInput::from_text(""))
            && let Some(input) = start(&self.ui.choice)
        {
            (self.ui.chosen, self.ui.follows) = (true, true);
            self.apply(Event::Start(Box::new(input)));
        }
    }

    /// Restarts the search around the plan shown, or stops it.
    fn search(&mut self, on: bool) {
        let session = &self.session;
        match (on, session.shown.clone()) {
            (true, Some(shown)) => {
                let base = PtrEq::new(Pinned { input: session.input.clone(), shown });
                self.ui.search = Some(Search {
                    base,
                    vary: self.ui.vary.clone(),
                    going: true,
                    is_lost: false,
                    found: None,
                    chosen: Vec::new(),
                    before: None,
                });
            }
            // Stopped but not removed, so that what was found stays readable.
            _ => {
                if let Some(search) = &mut self.ui.search {
                    search.going = false;
                }
            }
        }
    }

    /// Shows a layout that the search found.
    fn look(&mut self, changes: Vec<(String, String)>) {
        let Some(search) = &self.ui.search else { return };
        let base = Box::new(search.base.input.clone());
        // A refused layout leaves the previous plan, so the list must not mark it as shown.
        let chosen = changes.clone();
        // The plan searched has a separate button.
        let looked_at =
            self.session.shown.clone().filter(|_| !search.chosen.is_empty() && search.chosen != chosen);
        let input = self.session.input.clone();
        let before = looked_at.map(|shown| PtrEq::new(Pinned { input, shown }));
        self.keeping_search(Event::TryOn(base, changes));
        if self.session.refused.is_none()
            && let Some(search) = &mut self.ui.search
        {
            (search.chosen, search.before) = (chosen, before);
        }
    }

    /// Asks `asked` about the current input, or cancels the question.
    fn ask(&mut self, asked: Option<Box<Asked>>) {
        match asked {
            Some(asked) => {
                let base = PtrEq::new(self.session.input.clone());
                let inquired = Inquired { base, asked: *asked, going: true, reply: None, chosen: None };
                self.ui.inquiry = Some(inquired);
            }
            None => {
                if let Some(inquiry) = &mut self.ui.inquiry {
                    inquiry.going = false;
                }
            }
        }
    }

    /// Shows a layout from the answer to a question.
    fn answered(&mut self, changes: Vec<(String, String)>) {
        let Some(inquiry) = &self.ui.inquiry else { return };
        let input = Box::new(inquiry.asked.changed(&inquiry.base));
        let chosen = Some(changes.clone());
        self.keeping_search(Event::TryOn(input, changes));
        if self.session.refused.is_none()
            && let Some(inquiry) = &mut self.ui.inquiry
        {
            inquiry.chosen = chosen;
        }
    }

    /// Applies `event` to the session and keeps the search results, whatever it does to the plan.
    fn keeping_search(&mut self, event: Event) {
        // `apply` removes both along with the plan that they belonged to.
        let found = (self.ui.search.clone(), self.ui.inquiry.clone());
        self.apply(event);
        (self.ui.search, self.ui.inquiry) = found;
    }
}

impl yew::Reducible for AppState {
    type Action = Action;

    /// Actions that need unread texts wait until these are read, and later actions that depend on the state queue
    /// behind them.
    fn reduce(self: Rc<Self>, action: Action) -> Rc<Self> {
        let mut next = (*self).clone();
        let mut queue = std::mem::take(&mut next.waiting);
        match action {
            Action::Read => {}
            // Now they are an ordinary event.
            Action::Taken(input) => {
                if let Some(first @ Action::Files(_)) = queue.first_mut() {
                    // What follows has waited for this and runs in order.
                    *first = Action::Session(Event::Open(input));
                }
            }
            Action::ReaderLost => {
                // Pending actions are kept for another try.
                next.waiting = queue;
                next.wanted = None;
                next.ui.reader_lost = true;
                return Rc::new(next);
            }
            action if !action.has_turn() => {
                next = next.after(action);
                next.waiting = queue;
                return Rc::new(next);
            }
            action => {
                // The answer that it requested would belong to a text that is gone.
                if matches!(action, Action::Session(Event::Edit(_))) {
                    queue.retain(|waiting| !waiting.is_settling());
                }
                queue.push(action);
                // Otherwise the queue is processed now: the text may have been read meanwhile.
                if queue.len() > 1 && next.wanted.is_some() {
                    // What the first one waits for is on its way.
                    next.waiting = queue;
                    return Rc::new(next);
                }
            }
        }
        next.wanted = None;
        next.ui.reader_lost = false;
        // Readings that example cards lacked meanwhile do not count.
        drop(wanted());
        let mut turn = queue.into_iter();
        while let Some(action) = turn.next() {
            // Tried on a copy: an answer that lacks readings must leave no trace.
            let tried = next.clone().after(action.clone());
            let task = match &action {
                // Files are always a task: telling scripts from configurations needs readers.
                Action::Files(files) => Some(ReadTask::files(&next.session.input, files.clone())),
                _ => wanted(),
            };
            if let Some(task) = task {
                next.wanted = Some(PtrEq::new(task));
                // This action and all later ones, in order.
                next.waiting = std::iter::once(action).chain(turn).collect();
                break;
            }
            next = tried;
        }
        Rc::new(next)
    }
}

impl AppState {
    /// The state after `action`.
    fn after(self, action: Action) -> Self {
        let mut next = self;
        let ui = &mut next.ui;
        match action {
            Action::Session(event) => {
                // A pinned plan is compared with anyway; the difference from the last change would repeat it.
                if matches!(event, Event::Pin) {
                    ui.before = None;
                }
                if matches!(event, Event::Start(_)) {
                    (ui.chosen, ui.follows) = (true, true);
                }
                next.apply(event);
            }
            Action::Settle => {
                next.apply(Event::Settle);
                next.ui.reading = false;
            }
            Action::Reading => ui.reading = true,
            Action::Panel(panel) => ui.panel = panel,
            Action::Input(tab) => {
                ui.input = tab;
                if tab == InputTab::Model {
                    next.begin_with_choice();
                }
            }
            Action::Begin(input) => {
                ui.panel = PanelId::Overview;
                ui.chosen = false;
                // An example is a script, or a plan of settings, which needs no box.
                ui.input = if input.is_settings_alone() { ui.input } else { InputTab::Script };
                next.apply(Event::Open(input));
            }
            Action::Choose(choice) => {
                // Not followed yet: a half-typed name gives no plan, and the plan shown may belong to a different
                // choice.
                ui.choice = choice;
            }
            Action::Share(open) => ui.sharing = open,
            Action::Theme(theme) => {
                ui.theme = theme;
                theme.keep();
            }
            Action::Stage(stage) => ui.stage = stage,
            Action::Explain(why) => ui.why = Some(why),
            Action::Tour(step) => ui.tour = step,
            Action::Search(on) => next.search(on),
            Action::Found(found) => {
                if let Some(search) = &mut ui.search {
                    // A stopped search stays stopped, whatever results are still in flight.
                    search.going = search.going && found.goes_on();
                    search.found = Some(found);
                }
                next.follow();
            }
            Action::SearchLost => {
                if let Some(search) = &mut ui.search {
                    search.going = false;
                    search.is_lost = true;
                }
            }
            Action::Vary(vary) => ui.vary = vary,
            Action::Look(changes) => next.look(changes),
            Action::Ask(asked) => next.ask(asked),
            Action::Reply(reply) => {
                if let Some(inquiry) = &mut ui.inquiry {
                    inquiry.going = inquiry.going && reply.goes_on;
                    inquiry.reply = Some(reply);
                }
            }
            Action::Answered(changes) => next.answered(changes),
            Action::CompareFound(with_before) => {
                if let Some(search) = &ui.search {
                    let before = search.before.clone().filter(|_| with_before);
                    let held = before.unwrap_or_else(|| search.base.clone());
                    ui.panel = PanelId::Compare;
                    next.keeping_search(Event::Hold(held));
                }
            }
            Action::Print(on) => ui.printing = on,
            Action::Files(_) | Action::Taken(_) | Action::Read | Action::ReaderLost => {}
            Action::Whole => {
                ui.all_drawn = true;
                // The plan is the same, so nothing that depends on it is dropped.
                next.session = Rc::new(apply((*next.session).clone(), Event::Advise));
            }
            Action::DismissUnknown => ui.unknown = None,
            Action::Measure(batch) => ui.measuring.take(batch),
            Action::Measured(found) => {
                if let Some(file) = ui.measuring.heard(found) {
                    // Where it is compared with the prediction.
                    ui.panel = PanelId::Time;
                    let own = next.session.input.own.with_file(file);
                    next.apply(Event::Own(Box::new(own)));
                }
            }
            Action::StopMeasuring => ui.measuring.stop(),
            Action::PassedTexts => ui.measuring.passed(),
            Action::DismissUnread => ui.measuring.unread.clear(),
        }
        // After every action: any of them may have made a plan that wants one.
        next.search_by_itself();
        next
    }
}
