//! The buttons beside the name of the page.

use shardscope::session::Event;
use yew::prelude::*;

use super::parts::{Sign, icon};
use super::store::Session;

/// Which sheet lies over the page.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Sheet {
    Gallery,
    Share,
}

/// Start, undo, redo, pin, share.
pub(crate) fn toolbar(session: &Session, send: &Callback<Event>, open: &Callback<Option<Sheet>>) -> Html {
    let event = |event: Event| send.reform(move |_: MouseEvent| event.clone());
    let sheet = |sheet: Sheet| open.reform(move |_: MouseEvent| Some(sheet));
    let steps = &session.steps;
    let (pin, pinned) = match session.pinned {
        Some(_) => (Event::Unpin, "true"),
        None => (Event::Pin, "false"),
    };
    html! {
        <div class="toolbar" role="toolbar" aria-label="Plan">
            <button type="button" class="button" onclick={sheet(Sheet::Gallery)}>{ icon(Sign::Grid) }{ "Start from…" }</button>
            <button type="button" class="button only-icon" title="Undo (Ctrl+Z)" aria-label="Undo" disabled={!steps.can_undo()} onclick={event(Event::Undo)}>{ icon(Sign::Undo) }</button>
            <button type="button" class="button only-icon" title="Redo (Ctrl+Shift+Z)" aria-label="Redo" disabled={!steps.can_redo()} onclick={event(Event::Redo)}>{ icon(Sign::Redo) }</button>
            <button type="button" class="button" aria-pressed={pinned} disabled={session.shown.is_none()} title="Hold this plan and see the next one beside it" onclick={event(pin)}>{ icon(Sign::Pin) }<span class="wide-only">{ "Pin" }</span></button>
            <button type="button" class="button main" onclick={sheet(Sheet::Share)}>{ icon(Sign::Share) }{ "Share" }</button>
        </div>
    }
}

/// Why a link could not be opened.
pub(crate) fn broken_link(session: &Session, send: &Callback<Event>) -> Html {
    let Some(error) = &session.broken_link else { return Html::default() };
    html! {
        <div class="broken-link" role="alert">
            { icon(Sign::Tight) }
            <p>{ "The link could not be opened: " }{ &error.0 }{ ". What you had is still here." }</p>
            <button type="button" class="button quiet" aria-label="Dismiss" onclick={send.reform(|_| Event::Dismiss)}>{ icon(Sign::Close) }</button>
        </div>
    }
}
