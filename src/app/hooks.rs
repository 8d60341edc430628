//! Hooks of our own: the window's events, the width of an element, the search beside the page.

use std::cell::RefCell;
use std::rc::Rc;

use gloo::events::{EventListener, EventListenerOptions};
use gloo::timers::callback::Timeout;
use shardscope::search::Walk;
use shardscope::session::{PtrEq, Shown};
use wasm_bindgen::JsCast;
use wasm_bindgen::closure::Closure;
use web_sys::{Element, Event, ResizeObserver, window};
use yew::prelude::*;

use super::action::Action;
use super::context::Dispatch;
use super::ui::Found;

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

/// Longest time spent searching at once, so that a frame is not lost. Unit: millisecond.
const SLICE: f64 = 12.0;
/// Combinations tried between two looks at the clock.
const AT_ONCE: u64 = 16;
/// Outcomes handed on.
const KEPT: usize = 12;

/// Searches other layouts of `shown` in slices while `on`.
#[hook]
pub(crate) fn use_search(shown: Option<PtrEq<Shown>>, on: bool, dispatch: Dispatch) {
    use_effect_with((shown, on), move |(shown, on)| {
        let timer: Rc<RefCell<Option<Timeout>>> = Rc::default();
        if let (Some(shown), true) = (shown, on) {
            slice(Rc::new(RefCell::new(Walk::new(&shown.plan))), timer.clone(), dispatch);
        }
        // Dropping the timer ends the search.
        move || drop(timer.borrow_mut().take())
    });
}

fn slice(walk: Rc<RefCell<Walk>>, timer: Rc<RefCell<Option<Timeout>>>, dispatch: Dispatch) {
    let next = timer.clone();
    let work = move || {
        let until = js_sys::Date::now() + SLICE;
        while walk.borrow_mut().step(AT_ONCE) && js_sys::Date::now() < until {}
        let found = found(&walk.borrow());
        let more = found.tried < found.all;
        dispatch.emit(Action::Found(Rc::new(found)));
        if more {
            slice(walk, next.clone(), dispatch);
        }
    };
    let waiting = Timeout::new(0, work);
    *timer.borrow_mut() = Some(waiting);
}

fn found(walk: &Walk) -> Found {
    let (tried, all) = walk.progress();
    Found {
        tried,
        all,
        refused: walk.refused(),
        too_large: walk.too_large(),
        best: walk.best().iter().take(KEPT).cloned().collect(),
        frontier: walk.frontier().to_vec(),
    }
}
