//! Files of the run's own tools as they are shown beside the script and under Time.

use shardscope::session::{Event, OwnRun};
use yew::prelude::*;

use super::action::Action;
use super::context::{AppContext, Dispatch, send, use_dispatch};
use super::widgets::{Sign, icon};

/// Bytes of a megabyte, as file managers count.
const MEGABYTE: f64 = 1e6;

/// A file whose figures were read, with the button that takes it away.
pub(crate) fn measured_chip(dispatch: &Dispatch, own: &OwnRun, name: &str) -> Html {
    let (own, gone) = (own.clone(), name.to_owned());
    let remove = send(dispatch, move || Action::Session(Event::Own(Box::new(own.without_file(&gone)))));
    html! {
        <li>
            { name }
            <span class="soft">{ "measured" }</span>
            <button type="button" class="button quiet" aria-label={format!("Remove {name}")} onclick={remove}>
                { icon(Sign::Close) }
            </button>
        </li>
    }
}

/// The file that is being read, with a way to stop, and files that could not be.
#[component(OwnFiles)]
pub(crate) fn own_files() -> Html {
    let dispatch = use_dispatch();
    let Some(app) = use_context::<AppContext>() else { return html!() };
    let measuring = &app.ui.measuring;
    let reading = measuring.candidates.first().map(|one| {
        // Rounded up: no file has 0.0 MB.
        let (name, size) = (one.file.name(), (one.file.size() / MEGABYTE * 10.0).ceil() / 10.0);
        html! {
            <>
                { format!("Reading {name} ({size:.1} MB)… ") }
                <button type="button" class="button small" onclick={send(&dispatch, || Action::StopMeasuring)}>
                    { "Stop" }
                </button>
            </>
        }
    });
    html! {
        <div class="own-files small">
            // There before it has anything to say, so that screen readers announce what comes.
            <div role="status">{ reading }</div>
            if !measuring.unread.is_empty() {
                <div role="alert">
                    { for measuring.unread.iter().map(|(name, why)| html! {
                        <p>{ format!("{name} is not read: {why}.") }</p>
                    }) }
                    <button type="button" class="button small" onclick={send(&dispatch, || Action::DismissUnread)}>
                        { "Dismiss" }
                    </button>
                </div>
            }
        </div>
    }
}
