//! The page: the input on one side, its answer on the other.

use std::rc::Rc;

use gloo::timers::callback::Timeout;
use shardscope::session::{Difference, Event, title, utf16_offset};
use wasm_bindgen::JsCast;
use web_sys::{Element, KeyboardEvent};
use yew::prelude::*;

use super::action::Action;
use super::answer::Answer;
use super::context::{AppContext, Dispatch};
use super::embed::Embedded;
use super::header::{BrokenLink, Header};
use super::hooks::{use_measuring, use_question, use_reader, use_search, use_window_event};
use super::input::Input;
use super::share::Share;
use super::state::AppState;
use super::tour::Tour;
use super::widgets::Card;
use super::{address, browser};
use crate::soon::soon;

/// How long the user must pause before the answer follows. Unit: millisecond.
const PAUSE: u32 = 150;
/// Text length that makes the pause a millisecond longer. Unit: byte.
const MORE: usize = 4_096;
/// Length of a text from which reading takes long enough to be announced. Unit: byte.
const LONG: usize = 60_000;
/// Two frames, in which the message that a long text is being read is painted. Unit: millisecond.
const FRAMES: u32 = 33;
/// How long the address lags behind the plan, so that not every keystroke becomes an entry. Unit: millisecond.
const BEHIND: u32 = 300;

#[derive(Properties, PartialEq)]
pub(crate) struct Props {
    /// State that the page opens with.
    pub first: Rc<AppState>,
}

/// Owns the state; everything else is drawn from it.
#[component(App)]
pub(crate) fn app(props: &Props) -> Html {
    let app = use_reducer(|| (*props.first).clone());
    let dispatcher = app.dispatcher();
    // The same callback for the life of the page, so that passing it along never redraws anything.
    let dispatch: Dispatch = use_callback((), move |action: Action, ()| dispatcher.dispatch(action));
    use_answer(&app, &dispatch);
    use_reader(&app, dispatch.clone());
    use_measuring(&app, dispatch.clone());
    use_address(&app);
    // The window has no element that could be a separate component.
    use_keys(&dispatch);
    use_search(app.ui.search.as_ref(), dispatch.clone());
    use_question(app.ui.inquiry.as_ref(), dispatch.clone());
    use_rest(&app, &dispatch);
    // The typeface waits for this (`index.html`): the first answer is laid out once.
    use_effect_with((), |()| browser::after_paint(|| browser::tell("shardscope-answered")));
    use_window_event("beforeprint", super::context::send(&dispatch, || Action::Print(true)));
    use_window_event("afterprint", super::context::send(&dispatch, || Action::Print(false)));
    let name = app.session.shown.as_deref().map_or_else(String::new, |shown| title(shown) + " · ");
    use_effect_with(name, |name| browser::set_title(&format!("{name}Shardscope")));
    // A frame is the same program with the same state; only what is drawn differs.
    let page = if browser::is_embedded() {
        html! { <Embedded /> }
    } else {
        html! { <Page /> }
    };
    html! {
        <ContextProvider<Dispatch> context={dispatch}>
            <ContextProvider<AppContext> context={app}>
                { page }
            </ContextProvider<AppContext>>
        </ContextProvider<Dispatch>>
    }
}

#[component(Page)]
fn page() -> Html {
    let Some(app) = use_context::<AppContext>() else { return html!() };
    // A link that carries no text is about its answer: it comes first on a phone. The form for a model and GPUs is
    // being filled in, and stays where it is.
    let answer_first = app.session.input.is_settings_alone() && !app.is_of_model_and_gpus();
    html! {
        <>
            <a class="skip" href="#answer">{ "Skip to the result" }</a>
            <Header />
            <BrokenLink />
            <main class={classes!("page", answer_first.then_some("answer-first"))} aria-busy={(!app.ui.all_drawn).then_some("true")}>
                if app.ui.all_drawn {
                    <Input />
                } else {
                    // A placeholder, so that the verdict keeps its place.
                    <div class="input-side"></div>
                }
                <Answer />
            </main>
            <Card />
            <Tour />
            if app.ui.sharing {
                <Share />
            }
        </>
    }
}

/// Draws what the first paint did not wait for.
#[hook]
fn use_rest(app: &AppContext, dispatch: &Dispatch) {
    let dispatch = dispatch.clone();
    use_effect_with(app.ui.all_drawn, move |all_drawn| {
        if !all_drawn {
            browser::after_paint(move || dispatch.emit(Action::Whole));
        }
    });
}

/// The answer follows the text when the user pauses; a long text is announced before it is read.
#[hook]
fn use_answer(app: &AppContext, dispatch: &Dispatch) {
    let (text, reading) = (app.session.input.text.clone(), app.ui.reading);
    let dispatch = dispatch.clone();
    let settled = app.session.is_settled();
    use_effect_with((text, reading, settled), move |(text, reading, settled)| {
        // Keys within the pause restart it: the effect's clean-up drops the timer.
        let timer = (!settled).then(|| {
            // A longer text takes longer to answer, so its author may keep typing a little longer.
            let more = u32::try_from(text.len() / MORE).unwrap_or(PAUSE);
            // Announce, let two frames paint it, then read.
            let (wait, action) = match (text.len() > LONG, reading) {
                (true, false) => (PAUSE + more, Action::Reading),
                (true, true) => (FRAMES, Action::Settle),
                _ => (PAUSE + more, Action::Settle),
            };
            Timeout::new(wait, move || dispatch.emit(action))
        });
        move || drop(timer)
    });
}

/// The address and the history follow the state: a replaced plan gets a new entry, anything else updates the current
/// entry, a little later.
#[hook]
fn use_address(app: &AppContext) {
    let last = use_mut_ref(|| None::<AppState>);
    let behind = use_mut_ref(|| None::<Timeout>);
    let state = (**app).clone();
    // The panel is part of the address, but not of the session.
    let revision = (app.session.revision, app.ui.panel);
    use_effect_with(revision, move |_| {
        let before = last.borrow_mut().replace(state.clone());
        match before {
            // Opened and untouched: the address is already right.
            None if state.session.revision == 0 => {}
            Some(before) if before.session.entries != state.session.entries => {
                // The pending write belongs to the previous plan, which is written at once, to its own entry.
                *behind.borrow_mut() = None;
                address::write(&before, false);
                address::write(&state, true);
            }
            _ => *behind.borrow_mut() = Some(Timeout::new(BEHIND, move || address::write(&state, false))),
        }
    });
    // Pending writes happen when the page is left. `pagehide` is outside of components, so the latest state is stored
    // where its callback finds it.
    let latest = use_mut_ref(|| (**app).clone());
    *latest.borrow_mut() = (**app).clone();
    let gone = use_callback((), move |_: web_sys::Event, ()| address::write(&latest.borrow(), false));
    use_window_event("pagehide", gone);
}

/// Handles undo and redo from the keyboard, links within the page, and the browser's history.
#[hook]
fn use_keys(dispatch: &Dispatch) {
    let keydown = use_callback(dispatch.clone(), |event: web_sys::Event, dispatch| {
        if let Some(redo) = event.dyn_ref::<KeyboardEvent>().and_then(redo) {
            // The browser's own undo would only know of keys typed into the box.
            event.prevent_default();
            let before = browser::script_box().map(|area| area.value());
            dispatch.emit(if redo { Event::Redo } else { Event::Undo }.into());
            if let Some(before) = before {
                // The box has the new text after the next frame.
                soon(move || show_change(&before));
            }
        }
    });
    use_window_event("keydown", keydown);
    let travel = use_callback(dispatch.clone(), |_: web_sys::Event, dispatch| {
        dispatch.emit(address::travelled().into());
    });
    use_window_event("popstate", travel);
    let click = use_callback((), |event: web_sys::Event, ()| jump(&event));
    use_window_event("click", click);
}

/// Ctrl or Cmd with Z undoes, with Shift and Z or with Y redoes, whatever CapsLock makes of the letter. Fields other
/// than the script keep their own undo.
fn redo(event: &KeyboardEvent) -> Option<bool> {
    if !(event.ctrl_key() || event.meta_key()) || event.alt_key() {
        return None;
    }
    // CapsLock with Shift gives a lower-case z; the letter decides, and Shift gives the direction.
    let redo = match event.key().to_lowercase().as_str() {
        "z" => event.shift_key(),
        "y" => true,
        _ => return None,
    };
    let target = event.target()?.dyn_into::<Element>().ok()?;
    let own =
        matches!(target.tag_name().as_str(), "INPUT" | "SELECT" | "TEXTAREA") && target.id() != "script";
    let in_dialog = target.closest("dialog").ok().flatten().is_some();
    (!own && !in_dialog).then_some(redo)
}

/// Moves the caret to where the script has changed from `before`.
fn show_change(before: &str) {
    let Some(area) = browser::script_box() else { return };
    let after = area.value();
    // Undo may have changed only settings, in which case the caret stays.
    if let Some(change) = Difference::between(before, &after) {
        let at = utf16_offset(&after, u32::try_from(change.new_end).unwrap_or(u32::MAX));
        let _ = area.set_selection_range(at, at);
    }
}

/// A link to a place in the page scrolls there without changing the address, which belongs to the plan.
fn jump(event: &web_sys::Event) {
    let link = event
        .target()
        .and_then(|target| target.dyn_into::<Element>().ok())
        .and_then(|target| target.closest("a[href^='#']").ok().flatten());
    let id = link.and_then(|link| link.get_attribute("href")).unwrap_or_default();
    // Links to missing places are left to the browser.
    let Some(place) = id.get(1..).and_then(browser::element) else { return };
    event.prevent_default();
    browser::bring(&place);
    browser::focus(&place);
}
