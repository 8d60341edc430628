//! The few things asked of the browser itself. Each may be refused, as in a sandboxed frame, and then does nothing.

use wasm_bindgen::JsCast;
use web_sys::{Document, HtmlTextAreaElement, Storage, window};

/// Where the text is kept across reloads.
pub(crate) const TEXT: &str = "shardscope.text";
/// Where the choice of theme is kept; read by `index.html` before the first paint.
pub(crate) const THEME: &str = "shardscope.theme";

pub(crate) fn document() -> Option<Document> {
    window()?.document()
}

fn storage() -> Option<Storage> {
    window()?.local_storage().ok().flatten()
}

/// What is kept under `key`.
pub(crate) fn kept(key: &str) -> Option<String> {
    storage()?.get_item(key).ok().flatten()
}

/// Keeps `value` under `key` if the browser lets it.
pub(crate) fn keep(key: &str, value: &str) {
    if let Some(storage) = storage() {
        let _ = storage.set_item(key, value);
    }
}

/// Sets or takes away the attribute that fixes the theme.
pub(crate) fn set_theme(theme: &str) {
    let Some(root) = document().and_then(|document| document.document_element()) else { return };
    let _ = match theme {
        "auto" => root.remove_attribute("data-theme"),
        _ => root.set_attribute("data-theme", theme),
    };
}

/// Selects the UTF-16 units from `start` to `end` in the script box and brings line `line` (from 1) of `lines` into view.
pub(crate) fn select(area: &HtmlTextAreaElement, start: u32, end: u32, line: u32, lines: u32) {
    let _ = area.focus();
    let _ = area.set_selection_range(start, end);
    let height = area.scroll_height() / i32::try_from(lines.max(1)).unwrap_or(1);
    let above = i32::try_from(line.saturating_sub(4)).unwrap_or(0);
    area.set_scroll_top(above * height);
    area.set_scroll_left(0);
}

/// The script box.
pub(crate) fn script_box() -> Option<HtmlTextAreaElement> {
    document()?.get_element_by_id("script")?.dyn_into().ok()
}
