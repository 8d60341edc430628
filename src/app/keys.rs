//! Undo and redo from the keyboard.

use gloo::timers::callback::Timeout;
use wasm_bindgen::JsCast;
use web_sys::{Element, KeyboardEvent};
use yew::prelude::*;

use super::address::listen;
use super::dom;
use super::store::Session;
use shardscope::session::{Difference, Event, utf16_offset};

/// Ctrl or Cmd with Z undoes, with Shift and Z or with Y redoes. Fields other than the script keep their own undo.
#[hook]
pub(crate) fn use_keys(session: &Session) {
    let dispatcher = session.dispatcher();
    use_effect_with((), move |()| {
        let listener = listen("keydown", move |event| {
            let Some(event) = event.dyn_ref::<KeyboardEvent>() else { return };
            let Some(step) = step(event) else { return };
            event.prevent_default();
            let before = dom::script_box().map(|area| area.value()).unwrap_or_default();
            dispatcher.dispatch(step);
            // The caret goes where the text changed, once it has.
            Timeout::new(0, move || show_change(&before)).forget();
        });
        move || drop(listener)
    });
}

fn step(event: &KeyboardEvent) -> Option<Event> {
    if !(event.ctrl_key() || event.meta_key()) || event.alt_key() {
        return None;
    }
    let redo = match event.key().as_str() {
        "z" => event.shift_key(),
        "Z" | "y" => true,
        _ => return None,
    };
    let target = event.target()?.dyn_into::<Element>().ok()?;
    let own =
        matches!(target.tag_name().as_str(), "INPUT" | "SELECT" | "TEXTAREA") && target.id() != "script";
    let in_dialog = target.closest("dialog").ok().flatten().is_some();
    (!own && !in_dialog).then_some(if redo { Event::Redo } else { Event::Undo })
}

fn show_change(before: &str) {
    let Some(area) = dom::script_box() else { return };
    let after = area.value();
    if let Some(change) = Difference::between(before, &after) {
        let at = utf16_offset(&after, u32::try_from(change.new_end).unwrap_or(u32::MAX));
        let _ = area.set_selection_range(at, at);
    }
}
