//! The address and the browser's history: they follow what is in hand, and bring it back.

use wasm_bindgen::{JsCast, JsValue};
use web_sys::{Element, window};

use super::{dom, embed};
use shardscope::session::{Event, Hand, State, Steps, apply, fragment, keep, restore};

/// What the page opens with: what this entry of the history kept, else the link, else what was in hand last.
pub(crate) fn first() -> State {
    if embed::asked().is_some() {
        // A frame shows what its address says, whoever looks at it, and keeps nothing.
        return apply(State::new(Hand::of("")), Event::Follow(dom::fragment()));
    }
    if let Some(kept) = dom::history_state().and_then(|text| restore(&text)) {
        return apply(State::new(kept.hand.clone()), Event::Restore(Box::new(kept)));
    }
    let own = dom::kept(dom::HAND).and_then(|text| restore(&text)).map(|kept| kept.hand);
    let fragment = dom::fragment();
    let has_own = own.is_some();
    if fragment.len() < 2 {
        return own.map_or_else(State::default, State::new);
    }
    // The reader's own text is one step back. At a first visit there is nothing before the link: the example's answer
    // would be taken for the link's.
    let before = own.unwrap_or_else(|| Hand::of(""));
    let mut state = apply(State::new(before), Event::Follow(fragment));
    if !has_own {
        if state.hand == Hand::of("") {
            let broken_link = state.broken_link;
            state = State::default();
            state.broken_link = broken_link;
        }
        state.steps = Steps::default();
    }
    state
}

/// The address of the page without anything after its path.
pub(crate) fn base() -> String {
    let address = window().and_then(|window| window.location().href().ok()).unwrap_or_default();
    address.split(['#', '?']).next().unwrap_or_default().to_owned()
}

/// Writes what is in hand into the address, as a `new` entry of the history or in the place of the one that is there.
pub(crate) fn write(state: &State, new: bool) {
    if embed::asked().is_some() {
        return;
    }
    let kept = keep(state);
    let fragment = fragment(state);
    let Some(window) = window() else { return };
    let location = window.location();
    let path = location.pathname().unwrap_or_default() + &location.search().unwrap_or_default();
    let address = if fragment.is_empty() { path } else { format!("{path}#{fragment}") };
    if let Ok(history) = window.history() {
        let state = JsValue::from_str(&kept);
        let _ = if new {
            history.push_state_with_url(&state, "", Some(&address))
        } else {
            history.replace_state_with_url(&state, "", Some(&address))
        };
    }
    // What only a link brought is not the reader's own until they change it.
    if state.steps.can_undo() && !state.hand.is_settings_alone() && state.hand != Hand::of("") {
        dom::keep(dom::HAND, &kept);
    }
}

/// What the entry of the history that the browser went to holds.
pub(crate) fn travelled() -> Event {
    match dom::history_state().and_then(|text| restore(&text)) {
        Some(kept) => Event::Restore(Box::new(kept)),
        None => Event::Follow(dom::fragment()),
    }
}

/// A link to a place of the page leads there and leaves the address alone, which belongs to the plan.
pub(crate) fn jump(event: &web_sys::Event) {
    let link = event
        .target()
        .and_then(|target| target.dyn_into::<Element>().ok())
        .and_then(|target| target.closest("a[href^='#']").ok().flatten());
    let id = link.and_then(|link| link.get_attribute("href")).unwrap_or_default();
    let Some(place) = id.get(1..).and_then(dom::element) else { return };
    event.prevent_default();
    dom::bring(&place);
    dom::focus(&place);
}
