//! The address and the browser's history: they follow what is in hand, and bring it back.

use std::cell::RefCell;
use std::rc::Rc;

use gloo::events::{EventListener, EventListenerOptions};
use gloo::timers::callback::Timeout;
use wasm_bindgen::{JsCast, JsValue};
use web_sys::{Element, ScrollBehavior, ScrollIntoViewOptions, window};
use yew::prelude::*;

use super::dom;
use super::store::{Session, Store};
use shardscope::session::{Event, Hand, State, Steps, apply, fragment, keep, restore, title};

/// How long the address stays behind the plan, so that not every key is an entry. Unit: millisecond.
const BEHIND: u32 = 300;

/// What the page opens with: what this entry of the history kept, else the link, else what was in hand last.
pub(crate) fn first() -> State {
    if let Some(kept) = dom::history_state().and_then(|text| restore(&text)) {
        return apply(State::new(kept.hand.clone()), Event::Restore(Box::new(kept)));
    }
    let own = dom::kept(dom::HAND).and_then(|text| restore(&text)).map(|kept| kept.hand);
    let fragment = dom::fragment();
    let has_own = own.is_some();
    let mut state = own.map_or_else(State::default, State::new);
    if fragment.len() > 1 {
        state = apply(state, Event::Follow(fragment));
        // The reader's own text is one step back; the example of a first visit is not theirs.
        if !has_own {
            state.steps = Steps::default();
        }
    }
    state
}

/// The address of the page without anything after its path.
pub(crate) fn base() -> String {
    let address = window().and_then(|window| window.location().href().ok()).unwrap_or_default();
    address.split(['#', '?']).next().unwrap_or_default().to_owned()
}

/// How an entry of the history is written.
#[derive(Clone, Copy, PartialEq)]
enum Entry {
    Replaced,
    New,
}

fn write(state: &State, entry: Entry) {
    let kept = keep(state);
    let fragment = fragment(state);
    let Some(window) = window() else { return };
    let location = window.location();
    let path = location.pathname().unwrap_or_default() + &location.search().unwrap_or_default();
    let address = if fragment.is_empty() { path } else { format!("{path}#{fragment}") };
    if let Ok(history) = window.history() {
        let state = JsValue::from_str(&kept);
        let _ = match entry {
            Entry::Replaced => history.replace_state_with_url(&state, "", Some(&address)),
            Entry::New => history.push_state_with_url(&state, "", Some(&address)),
        };
    }
    // What only a link brought is not the reader's own until they change it.
    if state.steps.can_undo() && !state.hand.is_settings_alone() && state.hand != Hand::of("") {
        dom::keep(dom::HAND, &kept);
    }
}

type Last = Rc<RefCell<Option<State>>>;

/// Keeps address, history and title in step with `session`, and follows Back, Forward and links.
#[hook]
pub(crate) fn use_address(session: &Session) {
    let last: Last = use_memo((), |()| RefCell::new(None));
    {
        let (last, state) = (last.clone(), (***session).clone());
        let seen = (session.hand.clone(), session.pinned.clone(), session.entries, session.answer.clone());
        use_effect_with(seen, move |_| follow(&last, state));
    }
    let name = session.shown.as_deref().map(title);
    use_effect_with(name, |name| {
        let name = name.as_ref().map_or_else(String::new, |name| format!("{name} · "));
        if let Some(document) = dom::document() {
            document.set_title(&format!("{name}Shardscope"));
        }
    });
    let dispatcher = session.dispatcher();
    use_effect_with((), move |()| {
        let moved = listen("popstate", move |_| {
            let kept = dom::history_state().and_then(|text| restore(&text));
            dispatcher.dispatch(match kept {
                Some(kept) => Event::Restore(Box::new(kept)),
                None => Event::Follow(dom::fragment()),
            });
        });
        let left = listen("pagehide", move |_| {
            if let Some(state) = last.borrow().as_ref() {
                write(state, Entry::Replaced);
            }
        });
        let jumped = listen("click", jump);
        move || drop((moved, left, jumped))
    });
}

/// Writes what is in hand: at once where it is something new, else when the reader pauses.
fn follow(last: &Last, state: State) -> impl FnOnce() + use<> {
    let old = last.borrow_mut().replace(state.clone());
    let timer = match old {
        Some(old) if old.entries != state.entries => {
            write(&old, Entry::Replaced);
            write(&state, Entry::New);
            None
        }
        // Nothing has happened yet: the address is as the reader gave it.
        None if state.revision == 0 => None,
        _ => Some(Timeout::new(BEHIND, move || write(&state, Entry::Replaced))),
    };
    move || drop(timer)
}

pub(crate) fn listen(name: &'static str, heard: impl Fn(&web_sys::Event) + 'static) -> Option<EventListener> {
    let window = window()?;
    let options = EventListenerOptions::enable_prevent_default();
    Some(EventListener::new_with_options(&window, name, options, heard))
}

/// A link to a place of the page leads there and leaves the address alone, which belongs to the plan.
fn jump(event: &web_sys::Event) {
    let link = event
        .target()
        .and_then(|target| target.dyn_into::<Element>().ok())
        .and_then(|target| target.closest("a[href^='#']").ok().flatten());
    let id = link.and_then(|link| link.get_attribute("href")).unwrap_or_default();
    let place = id.get(1..).and_then(|id| dom::document()?.get_element_by_id(id));
    let Some(place) = place.and_then(|place| place.dyn_into::<web_sys::HtmlElement>().ok()) else { return };
    event.prevent_default();
    let options = ScrollIntoViewOptions::new();
    options.set_behavior(ScrollBehavior::Auto);
    place.scroll_into_view_with_scroll_into_view_options(&options);
    if !place.has_attribute("tabindex") {
        let _ = place.set_attribute("tabindex", "-1");
    }
    let focus = web_sys::FocusOptions::new();
    focus.set_prevent_scroll(true);
    let _ = place.focus_with_options(&focus);
}

/// The session that a page starts with.
pub(crate) fn store() -> Store {
    Store(first())
}
