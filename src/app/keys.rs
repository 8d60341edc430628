//! What the window hears: undo and redo from the keyboard, links to places of the page, the browser's history.

use gloo::events::{EventListener, EventListenerOptions};
use shardscope::session::{Difference, utf16_offset};
use wasm_bindgen::JsCast;
use web_sys::{Element, KeyboardEvent, window};

use super::act::{Act, Hear, tell};
use super::{address, dom};

/// Hears the window's events called `name`.
pub(crate) fn listen(name: &'static str, hear: &Hear) -> Option<EventListener> {
    let window = window()?;
    let options = EventListenerOptions::enable_prevent_default();
    let hear = hear.clone();
    let heard = move |event: &web_sys::Event| match name {
        "popstate" => tell(&hear, Act::Travel),
        "pagehide" => tell(&hear, Act::Write),
        "click" => address::jump(event),
        _ => {
            if let Some(forth) = event.dyn_ref::<KeyboardEvent>().and_then(step) {
                event.prevent_default();
                tell(&hear, Act::Step { forth });
            }
        }
    };
    Some(EventListener::new_with_options(&window, name, options, heard))
}

/// Ctrl or Cmd with Z undoes, with Shift and Z or with Y redoes. Fields other than the script keep their own undo.
fn step(event: &KeyboardEvent) -> Option<bool> {
    if !(event.ctrl_key() || event.meta_key()) || event.alt_key() {
        return None;
    }
    let forth = match event.key().as_str() {
        "z" => event.shift_key(),
        "Z" | "y" => true,
        _ => return None,
    };
    let target = event.target()?.dyn_into::<Element>().ok()?;
    let own =
        matches!(target.tag_name().as_str(), "INPUT" | "SELECT" | "TEXTAREA") && target.id() != "script";
    let in_dialog = target.closest("dialog").ok().flatten().is_some();
    (!own && !in_dialog).then_some(forth)
}

/// Puts the caret where the script, which was `before`, has changed.
pub(crate) fn show_change(before: &str) {
    let Some(area) = dom::script_box() else { return };
    let after = area.value();
    if let Some(change) = Difference::between(before, &after) {
        let at = utf16_offset(&after, u32::try_from(change.new_end).unwrap_or(u32::MAX));
        let _ = area.set_selection_range(at, at);
    }
}
