//! Hooks of our own: the window's events, the width of an element, the search beside the page.

use std::cell::Cell;
use std::rc::Rc;

use gloo::events::{EventListener, EventListenerOptions};
use gloo::timers::callback::Timeout;
use shardscope::session::beside::Measurement;
use shardscope::session::reader::{ReadReply, ReadTask};
use shardscope::session::texts::provide;
use wasm_bindgen::JsCast;
use wasm_bindgen::closure::Closure;
use wasm_bindgen_futures::spawn_local;
use web_sys::{Element, Event, ResizeObserver};
use yew::prelude::*;

use super::action::Action;
use super::beside;
use super::browser::{after_paint, bring, element, is_embedded, window};
use super::context::{AppContext, Dispatch};
use super::question::Inquired;
use super::reader::{self, Heard};
use super::ui::{InputTab, Search};

/// Listens to the window's events called `name`, which `heard` may prevent.
#[hook]
pub(crate) fn use_window_event(name: &'static str, heard: Callback<Event>) {
    use_effect_with(heard, move |heard| {
        let heard = heard.clone();
        // Passive listeners (the default for some events) could not prevent the browser from opening a dropped file.
        let options = EventListenerOptions::enable_prevent_default();
        let listener = window().map(|window| {
            EventListener::new_with_options(&window, name, options, move |event| heard.emit(event.clone()))
        });
        move || drop(listener)
    });
}

/// Widths are reported in steps of this many CSS pixels, so that dragging a window does not redraw at every pixel.
const STEP: i32 = 8;

/// The inner width of the element in CSS pixels, rounded down a little; 0 before it is known.
#[hook]
pub(crate) fn use_width(node: &NodeRef) -> u32 {
    // `use_state_eq`: observers fire for changes of height too.
    let width = use_state_eq(|| 0);
    let measured = width.clone();
    use_effect_with(node.clone(), move |node| {
        // The closure is kept alive with it; if dropped, the observer would call a dead closure.
        let watch =
            node.cast::<Element>().and_then(|element| watch(element, move |width| measured.set(width)));
        move || {
            if let Some((observer, _callback)) = watch {
                observer.disconnect();
            }
        }
    });
    *width
}

fn watch(element: Element, tell: impl Fn(u32) + 'static) -> Option<(ResizeObserver, Closure<dyn FnMut()>)> {
    let watched = element.clone();
    let tell = move || tell(u32::try_from(element.client_width() / STEP * STEP).unwrap_or(0));
    let callback = Closure::<dyn FnMut()>::new(tell);
    let observer = ResizeObserver::new(callback.as_ref().unchecked_ref()).ok()?;
    observer.observe(&watched);
    Some((observer, callback))
}

/// Searches other layouts of the plan that `search` began with, while it goes on.
#[hook]
pub(crate) fn use_search(search: Option<&Search>, dispatch: Dispatch) {
    let begun = search.filter(|search| search.going).map(|search| (search.base.clone(), search.vary.clone()));
    // Compared by what the search began with, so that new findings do not restart it.
    use_effect_with(begun, move |begun| {
        let search = begun.as_ref().map(|(base, vary)| {
            beside::search(&base.input, vary, move |found| {
                dispatch.emit(found.map_or(Action::SearchLost, Action::Found));
            })
        });
        // Dropping it ends it.
        move || drop(search)
    });
}

/// Has the files read that may be from the run's own tools, and passes the others on.
#[hook]
pub(crate) fn use_measuring(app: &AppContext, dispatch: Dispatch) {
    let measuring = &app.ui.measuring;
    // One at a time: a snapshot may take a gigabyte while it is read.
    let next = measuring.candidates.first().map(|one| one.file.clone());
    let heard = dispatch.clone();
    use_effect_with(next, move |file| {
        let work = file.as_ref().map(|file| {
            beside::measured(file, move |found| {
                let is_found = matches!(found, Some(Measurement::Found(_)));
                heard.emit(Action::Measured(found));
                if is_found {
                    after_paint(|| {
                        // Where there is no plan, there is nothing to compare with yet.
                        if let Some(place) = element("own-run") {
                            bring(&place);
                        }
                    });
                }
            })
        });
        // Dropping it ends it.
        move || drop(work)
    });
    use_effect_with(measuring.texts().to_vec(), move |texts| {
        if !texts.is_empty() {
            dispatch.emit(Action::Files(texts.clone()));
            dispatch.emit(Action::PassedTexts);
            dispatch.emit(Action::Input(InputTab::Script));
        }
    });
}

/// Idle time after the first answer before the reader is loaded ahead. Unit: millisecond.
const WARM: u32 = 500;

/// Has the texts read that an action waits for.
#[hook]
pub(crate) fn use_reader(app: &AppContext, dispatch: Dispatch) {
    // Compared by the wanted task, so that the same one is not requested twice.
    use_effect_with(app.wanted.clone(), move |wanted| {
        let Some(task) = wanted.clone() else { return };
        spawn_local(async move {
            match reader::ask(&task).await {
                // Files are taken up; all other replies complete a pending answer.
                Heard::Said(ReadReply::Input(input)) => dispatch.emit(Action::Taken(input)),
                Heard::Said(reply) => {
                    let read = provide(&task, reply);
                    dispatch.emit(if read { Action::Read } else { Action::ReaderLost });
                }
                Heard::Lost | Heard::Broken => dispatch.emit(Action::ReaderLost),
                // A newer text was requested meanwhile, and its answer will come.
                Heard::Superseded => {}
            }
        });
    });
    // Loaded ahead for the first text that is pasted. A frame shows what its address says.
    use_effect_with((), |()| {
        if !is_embedded() {
            Timeout::new(WARM, reader::warm).forget();
        }
    });
}

/// The reply of the text reader to `task`, once there is one.
#[hook]
pub(crate) fn use_reply(task: Option<ReadTask>) -> Option<ReadReply> {
    let received = use_state_eq(|| None::<(ReadTask, ReadReply)>);
    let setter = received.setter();
    use_effect_with(task.clone(), move |task| {
        // A component may be gone before its reply.
        let wanted = Rc::new(Cell::new(true));
        if let Some(task) = task.clone() {
            let wanted = wanted.clone();
            spawn_local(async move {
                if let Heard::Said(reply) = reader::ask(&task).await
                    && wanted.get()
                {
                    setter.set(Some((task, reply)));
                }
            });
        }
        move || wanted.set(false)
    });
    // A reply to an earlier task does not belong to this one.
    (*received).clone().filter(|(of, _)| Some(of) == task.as_ref()).map(|(_, reply)| reply)
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
