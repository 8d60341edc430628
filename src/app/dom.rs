//! The few things asked of the browser itself. Each may be refused, as in a sandboxed frame, and then does nothing.

use wasm_bindgen::JsCast;
use wasm_bindgen_futures::{JsFuture, spawn_local};
use web_sys::{
    Blob, BlobPropertyBag, Document, FileList, HtmlAnchorElement, HtmlTextAreaElement, Storage, Url, window,
};

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

/// Gives `text` to the reader as a file.
pub(crate) fn download(name: &str, kind: &str, text: &str) {
    let parts = js_sys::Array::of1(&text.into());
    let bag = BlobPropertyBag::new();
    bag.set_type(kind);
    let blob = Blob::new_with_str_sequence_and_options(&parts, &bag);
    let Some(url) = blob.ok().and_then(|blob| Url::create_object_url_with_blob(&blob).ok()) else { return };
    let link = document()
        .and_then(|document| document.create_element("a").ok())
        .and_then(|link| link.dyn_into::<HtmlAnchorElement>().ok());
    if let Some(link) = link {
        link.set_href(&url);
        link.set_download(name);
        link.click();
    }
    let _ = Url::revoke_object_url(&url);
}

/// Puts `text` on the clipboard; `done` hears whether that was allowed.
pub(crate) fn copy(text: &str, done: impl Fn(bool) + 'static) {
    let Some(navigator) = window().map(|window| window.navigator()) else { return done(false) };
    // Without a secure context there is no clipboard at all.
    let clipboard = js_sys::Reflect::get(&navigator, &"clipboard".into());
    if clipboard.is_ok_and(|clipboard| clipboard.is_undefined()) {
        return done(false);
    }
    let promise = navigator.clipboard().write_text(text);
    spawn_local(async move { done(JsFuture::from(promise).await.is_ok()) });
}

/// Reads the first of the files as text and hands it on.
pub(crate) fn read_first(files: Option<FileList>, then: impl Fn(String) + 'static) {
    let Some(file) = files.and_then(|files| files.get(0)) else { return };
    spawn_local(async move {
        if let Some(text) = JsFuture::from(file.text()).await.ok().and_then(|text| text.as_string()) {
            then(text);
        }
    });
}

/// Whether the window is wide enough for two columns; in step with `styles/page.css`.
pub(crate) fn is_wide() -> bool {
    let query = window().and_then(|window| window.match_media("(min-width: 64.01rem)").ok().flatten());
    query.is_none_or(|query| query.matches())
}
