//! Hooks of our own: the window's events, the width of an element, the search beside the page.

use gloo::events::{EventListener, EventListenerOptions};
use wasm_bindgen::JsCast;
use wasm_bindgen::closure::Closure;
use web_sys::{Element, Event, ResizeObserver};
use yew::prelude::*;

use super::action::Action;
use super::beside;
use super::browser::window;
use super::context::Dispatch;
use super::question::Inquired;
use super::ui::Search;

/// Hears the window's events called `name`, which `heard` may keep from the browser.
#[hook]
pub(crate) fn use_window_event(name: &'static str, heard: Callback<Event>) {
    use_effect_with(heard, move |heard| {
        let heard = heard.clone();
        let options = EventListenerOptions::enable_prevent_default();
        let listener = window().map(|window| {
            EventListener::new_with_options(&window, name, options, move |event| heard.emit(event.clone()))
        });
        move || drop(listener)
    });
}

/// Widths are told in steps of so many CSS pixels, so that dragging a window does not redraw at every pixel.
const STEP: i32 = 8;

/// The inner width of the element in CSS pixels, rounded down a little; 0 before it is known.
#[hook]
pub(crate) fn use_width(node: &NodeRef) -> u32 {
    let width = use_state_eq(|| 0);
    let told = width.clone();
    use_effect_with(node.clone(), move |node| {
        let watch = node.cast::<Element>().and_then(|element| watch(element, move |width| told.set(width)));
        move || {
            if let Some((observer, _told)) = watch {
                observer.disconnect();
            }
        }
    });
    *width
}

fn watch(element: Element, tell: impl Fn(u32) + 'static) -> Option<(ResizeObserver, Closure<dyn FnMut()>)> {
    let watched = element.clone();
    let tell = move || tell(u32::try_from(element.client_width() / STEP * STEP).unwrap_or(0));
    let told = Closure::<dyn FnMut()>::new(tell);
    let observer = ResizeObserver::new(told.as_ref().unchecked_ref()).ok()?;
    observer.observe(&watched);
    Some((observer, told))
}

/// Searches other layouts of the plan that `search` began with, while it goes on.
#[hook]
pub(crate) fn use_search(search: Option<&Search>, dispatch: Dispatch) {
    let base = search.filter(|search| search.going).map(|search| search.base.clone());
    use_effect_with(base, move |base| {
        let search = base.as_ref().map(|base| {
            beside::search(&base.input, move |found| {
                dispatch.emit(found.map_or(Action::SearchLost, Action::Found));
            })
        });
        // Dropping it ends it.
        move || drop(search)
    });
}

/// Works on the question that was asked, while it goes on.
#[hook]
pub(crate) fn use_question(inquiry: Option<&Inquired>, dispatch: Dispatch) {
    let asked = inquiry.filter(|one| one.going).map(|one| (one.base.clone(), one.asked.clone()));
    use_effect_with(asked, move |asked| {
        let working = asked.as_ref().map(|(base, asked)| {
            beside::question(base, asked, move |reply| dispatch.emit(Action::Reply(reply)))
        });
        // Dropping it ends it.
        move || drop(working)
    });
}
