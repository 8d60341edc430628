//! The address and the browser's history: they follow the input, and restore it. The fragment holds the plan, the
//! query the view of its answer: `?view=map&gpu=n0_g3&color=data#/1?tp=8`.

use shardscope::session::map::{Colour, colour_named, colour_slug, find_gpu};
use shardscope::session::{
    Choice, Event, Objective, Shown, State, Steps, UserInput, Varied, apply, fragment, keep, restore,
};
use shardscope::topology::Rank;

use super::browser::{self, window};
use super::measuring::Measuring;
use super::panel_id::PanelId;
use super::state::AppState;
use super::ui::{InputTab, Theme, UiState};

/// State that the page opens with.
pub(crate) fn first() -> AppState {
    let view = View::asked();
    let mut session = first_session();
    // Before anything is drawn, so that the map's first picture has the colours of the address.
    if let Some(shown) = &session.shown {
        (session.picked, session.colour) = view.choices(shown);
    }
    let unknown = view.unknown(&session);
    // The example's answer is already complete in the page. Any other answer shows the verdict first.
    let all_drawn = !session.figures_first || session.shown.is_none();
    let choice = Choice {
        model: "Llama-3.1-70B".to_owned(),
        objective: Objective::PreTrain,
        accelerator: "H100-SXM".to_owned(),
        gpus: 64,
        sequence: 8192,
    };
    let ui = UiState {
        input: InputTab::Script,
        choice,
        chosen: false,
        follows: false,
        panel: view.panel,
        sharing: false,
        theme: Theme::stored(),
        reading: false,
        stage: None,
        why: None,
        tour: None,
        search: None,
        vary: Varied::default(),
        inquiry: None,
        before: None,
        printing: false,
        reader_lost: false,
        unknown,
        all_drawn,
        measuring: Measuring::default(),
    };
    let mut first = AppState::new(session, ui);
    // A link to a plan that does not fit starts its search as if the plan had been entered here.
    first.search_by_itself();
    first
}

/// The state of this history entry, otherwise the link, otherwise the last input.
fn first_session() -> State {
    // This page must not use the storage of the embedding site's visitors.
    if browser::is_embedded() {
        // A frame shows what its address says, whoever looks at it, and stores nothing.
        return followed(UserInput::from_text(""), browser::fragment());
    }
    // Going back or reloading: the entry has everything, the link only the settings.
    if let Some(stored) = browser::history_state().and_then(|text| restore(&text)) {
        return apply(State::figures_first(stored.input.clone()), Event::Restore(Box::new(stored)));
    }
    let own = browser::stored(browser::INPUT).and_then(|text| restore(&text)).map(|stored| stored.input);
    let fragment = browser::fragment();
    let has_own = own.is_some();
    // `#` alone is not a link.
    if fragment.len() < 2 {
        return own.map_or_else(State::default, State::figures_first);
    }
    // The user's own text is one undo step back. On a first visit there is nothing before the link: the example's
    // answer would be mistaken for the link's.
    let before = own.unwrap_or_else(|| UserInput::from_text(""));
    let mut state = followed(before, fragment);
    if !has_own {
        // A broken first link leaves the example, with a message.
        if state.input == UserInput::from_text("") {
            let broken_link = state.broken_link;
            state = State::default();
            state.broken_link = broken_link;
        }
        // Nothing before the link was the reader's own.
        state.steps = Steps::default();
    }
    state
}

/// The link `fragment`, followed from `before`. Nobody sees the answer to `before`, so it is not computed: the user's
/// own text would have to be read for it, by a program that a settings link does not need.
fn followed(before: UserInput, fragment: String) -> State {
    let state = apply(State::unanswered(before.clone()), Event::Follow(fragment.clone()));
    if state.input != before {
        return state;
    }
    // A link that is broken, or equal to the current input.
    apply(State::figures_first(before), Event::Follow(fragment))
}

/// The view of the answer that the address requests.
struct View {
    panel: PanelId,
    /// A name after `view=` that is no panel's.
    no_panel: Option<String>,
    gpu: Option<String>,
    colour: Option<String>,
}

impl View {
    /// Parsed from the query, or from a fragment that names a panel (`#map`).
    fn asked() -> Self {
        let fragment = browser::fragment();
        let asked = browser::parameter("view");
        let no_panel = asked.clone().filter(|name| PanelId::named(name).is_none());
        let named = asked.or_else(|| fragment.strip_prefix('#').map(str::to_owned));
        let panel = named.and_then(|name| PanelId::named(&name)).unwrap_or(PanelId::Overview);
        Self { panel, no_panel, gpu: browser::parameter("gpu"), colour: browser::parameter("color") }
    }

    /// The part of it that does not exist, if any.
    fn unknown(&self, session: &State) -> Option<String> {
        if let Some(name) = &self.no_panel {
            let names: Vec<&str> = PanelId::all().map(PanelId::name).collect();
            return Some(format!("There is no view “{name}”. Views: {}.", names.join(", ")));
        }
        // Without an answer neither a GPU nor a colour can be judged.
        session.shown.as_ref()?;
        let gpu = self.gpu.as_ref().filter(|_| session.picked.is_none());
        // By what was applied: a colour that the plan does not have falls back to stages.
        let colour = self.colour.as_ref().filter(|name| colour_slug(session.colour) != name.as_str());
        gpu.map(|gpu| format!("This plan has no GPU “{gpu}”."))
            .or_else(|| colour.map(|name| format!("The map has no colors by “{name}” for this plan.")))
    }

    /// The GPU to pick on the map, and what its colours show.
    fn choices(&self, shown: &Shown) -> (Option<Rank>, Colour) {
        let picked = self.gpu.as_ref().and_then(|gpu| find_gpu(&shown.plan, gpu));
        let colour = self.colour.as_ref().and_then(|name| colour_named(&shown.plan, name));
        (picked, colour.unwrap_or(Colour::Stage))
    }
}

fn query(state: &AppState) -> String {
    let mut said = String::new();
    if state.ui.panel != PanelId::Overview {
        said += &format!("&view={}", state.ui.panel.name());
    }
    said += &of_map(&state.session);
    // Only the first separator starts the query.
    if said.is_empty() { said } else { said.replacen('&', "?", 1) }
}

/// The query for the current view of the map: the picked GPU, and what its colours show.
pub(crate) fn of_map(session: &State) -> String {
    let mut said = String::new();
    if let (Some(rank), Some(shown)) = (session.picked, &session.shown) {
        said += &format!("&gpu={}", rank.label(shown.plan.cluster().gpus_per_node));
    }
    if session.colour != Colour::Stage {
        said += &format!("&color={}", colour_slug(session.colour));
    }
    said
}

/// The address of the page without anything after its path.
pub(crate) fn base() -> String {
    let address = window().and_then(|window| window.location().href().ok()).unwrap_or_default();
    address.split(['#', '?']).next().unwrap_or_default().to_owned()
}

/// Writes the input into the address, as a `new` history entry or replacing the current one.
pub(crate) fn write(state: &AppState, new: bool) {
    if browser::is_embedded() {
        // A frame's history would be entries of the embedder's back button.
        return;
    }
    let session = &state.session;
    let stored = keep(session);
    let fragment = fragment(session);
    let mut address = window().and_then(|window| window.location().pathname().ok()).unwrap_or_default();
    address += &query(state);
    if !fragment.is_empty() {
        address += "#";
        address += &fragment;
    }
    browser::write_history(&address, &stored, new);
    // Input from a link is not the user's own until they change it.
    if session.steps.can_undo()
        && !session.input.is_settings_alone()
        && session.input != UserInput::from_text("")
    {
        browser::keep(browser::INPUT, &stored);
    }
}

/// The event for the history entry that the browser went to.
pub(crate) fn travelled() -> Event {
    match browser::history_state().and_then(|text| restore(&text)) {
        // Typed or followed by hand: such an entry has an address but no state.
        Some(stored) => Event::Restore(Box::new(stored)),
        None => Event::Follow(browser::fragment()),
    }
}
