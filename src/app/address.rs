//! The address and the browser's history: they follow what the reader gave, and bring it back. The fragment holds the
//! plan, the query what of its answer is looked at: `?view=map&gpu=n0_g3&color=data#/1?tp=8`.

use shardscope::session::map::{Colour, colour_named, colour_slug, find_gpu};
use shardscope::session::{
    Choice, Event, Objective, Shown, State, Steps, UserInput, Varied, apply, fragment, keep, restore,
};
use shardscope::topology::Rank;

use super::browser::{self, window};
use super::panel_id::PanelId;
use super::state::AppState;
use super::ui::{InputTab, Theme, UiState};

/// State that the page opens with.
pub(crate) fn first() -> AppState {
    let view = View::asked();
    let mut session = first_session();
    // Before anything is drawn: the map's first picture has the colours of the address.
    if let Some(shown) = &session.shown {
        (session.picked, session.colour) = view.choices(shown);
    }
    let unknown = view.unknown(&session);
    // The example's answer stands in the page already, whole. Whoever waits for another sees the verdict first.
    let whole = !session.figures_first || session.shown.is_none();
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
        theme: Theme::kept(),
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
        whole,
    };
    let mut first = AppState::new(session, ui);
    // A link to a plan that does not fit begins its search as if the plan had been made here.
    first.search_by_itself();
    first
}

/// What this entry of the history kept, else the link, else what was given last.
fn first_session() -> State {
    // Storage of the embedding site's visitors is not this page's to use.
    if browser::is_embedded() {
        // A frame shows what its address says, whoever looks at it, and keeps nothing.
        return apply(State::figures_first(UserInput::from_text("")), Event::Follow(browser::fragment()));
    }
    // Going back or reloading: the entry has everything, the link only what settings say.
    if let Some(kept) = browser::history_state().and_then(|text| restore(&text)) {
        return apply(State::figures_first(kept.input.clone()), Event::Restore(Box::new(kept)));
    }
    let own = browser::kept(browser::INPUT).and_then(|text| restore(&text)).map(|kept| kept.input);
    let fragment = browser::fragment();
    let has_own = own.is_some();
    // `#` alone is no link.
    if fragment.len() < 2 {
        return own.map_or_else(State::default, State::figures_first);
    }
    // The reader's own text is one step back. At a first visit there is nothing before the link: the example's answer
    // would be taken for the link's.
    let before = own.unwrap_or_else(|| UserInput::from_text(""));
    let mut state = apply(State::figures_first(before), Event::Follow(fragment));
    if !has_own {
        // A broken first link leaves the example, with the remark beside it.
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

/// What of the answer the address asks for.
struct View {
    panel: PanelId,
    /// A name behind `view=` that no panel has.
    no_panel: Option<String>,
    gpu: Option<String>,
    colour: Option<String>,
}

impl View {
    /// What the query says; a fragment that names a panel (`#map`) does too.
    fn asked() -> Self {
        let fragment = browser::fragment();
        let asked = browser::parameter("view");
        let no_panel = asked.clone().filter(|name| PanelId::named(name).is_none());
        let named = asked.or_else(|| fragment.strip_prefix('#').map(str::to_owned));
        let panel = named.and_then(|name| PanelId::named(&name)).unwrap_or(PanelId::Overview);
        Self { panel, no_panel, gpu: browser::parameter("gpu"), colour: browser::parameter("color") }
    }

    /// What of it is not there, where something is not.
    fn unknown(&self, session: &State) -> Option<String> {
        if let Some(name) = &self.no_panel {
            let names: Vec<&str> = PanelId::all().map(PanelId::name).collect();
            return Some(format!("There is no view “{name}”. Views: {}.", names.join(", ")));
        }
        // Without an answer neither a GPU nor a colour can be judged.
        session.shown.as_ref()?;
        let gpu = self.gpu.as_ref().filter(|_| session.picked.is_none());
        // By what was taken: a colour that the plan has not falls back to stages.
        let colour = self.colour.as_ref().filter(|name| colour_slug(session.colour) != name.as_str());
        gpu.map(|gpu| format!("This plan has no GPU “{gpu}”."))
            .or_else(|| colour.map(|name| format!("The map has no colors by “{name}” for this plan.")))
    }

    /// The GPU to pick on the map, and what its colours tell.
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
    // Only the first separator is the query's.
    if said.is_empty() { said } else { said.replacen('&', "?", 1) }
}

/// What an address says of the map as it is looked at: the GPU that is picked, what its colors tell.
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

/// Writes what the reader gave into the address, as a `new` entry of the history or in the place of the one that is
/// there.
pub(crate) fn write(state: &AppState, new: bool) {
    if browser::is_embedded() {
        // A frame's history would be entries of the embedder's back button.
        return;
    }
    let session = &state.session;
    let kept = keep(session);
    let fragment = fragment(session);
    let mut address = window().and_then(|window| window.location().pathname().ok()).unwrap_or_default();
    address += &query(state);
    if !fragment.is_empty() {
        address += "#";
        address += &fragment;
    }
    browser::write_history(&address, &kept, new);
    // What only a link brought is not the reader's own until they change it.
    if session.steps.can_undo()
        && !session.input.is_settings_alone()
        && session.input != UserInput::from_text("")
    {
        browser::keep(browser::INPUT, &kept);
    }
}

/// What the entry of the history that the browser went to holds.
pub(crate) fn travelled() -> Event {
    match browser::history_state().and_then(|text| restore(&text)) {
        // Typed or followed by hand: such an entry has an address and no state.
        Some(kept) => Event::Restore(Box::new(kept)),
        None => Event::Follow(browser::fragment()),
    }
}
