//! The few things asked of the browser itself. Each may be refused, as in a sandboxed frame, and then does nothing.

use wasm_bindgen::JsCast;
use wasm_bindgen::closure::Closure;
use wasm_bindgen_futures::{JsFuture, spawn_local};
use web_sys::{
    Blob, BlobPropertyBag, CanvasRenderingContext2d, Document, Element, FileList, HtmlAnchorElement,
    HtmlCanvasElement, HtmlImageElement, HtmlTextAreaElement, Storage, Url, window,
};

/// Where what is in hand is kept for the next visit.
pub(crate) const HAND: &str = "shardscope.hand";
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
    if let Some(blob) = blob(kind, text) {
        download_blob(name, &blob);
    }
}

fn blob(kind: &str, text: &str) -> Option<Blob> {
    let parts = js_sys::Array::of1(&text.into());
    let bag = BlobPropertyBag::new();
    bag.set_type(kind);
    Blob::new_with_str_sequence_and_options(&parts, &bag).ok()
}

fn create<T: JsCast>(name: &str) -> Option<T> {
    document()?.create_element(name).ok()?.dyn_into().ok()
}

fn download_blob(name: &str, blob: &Blob) {
    let Ok(url) = Url::create_object_url_with_blob(blob) else { return };
    if let Some(link) = create::<HtmlAnchorElement>("a") {
        link.set_href(&url);
        link.set_download(name);
        link.click();
    }
    let _ = Url::revoke_object_url(&url);
}

/// Device pixels per CSS pixel of a drawn picture.
const SHARPNESS: u32 = 2;

/// Draws the SVG `picture` and gives it to the reader as a PNG file.
pub(crate) fn download_png(name: &str, picture: &str) {
    let url = blob("image/svg+xml", picture).and_then(|blob| Url::create_object_url_with_blob(&blob).ok());
    let (Some(url), Some(image)) = (url, create::<HtmlImageElement>("img")) else { return };
    let (name, drawn) = (name.to_owned(), image.clone());
    image.set_src(&url);
    spawn_local(async move {
        if JsFuture::from(drawn.decode()).await.is_ok() {
            draw(&drawn, name);
        }
        let _ = Url::revoke_object_url(&url);
    });
}

fn draw(image: &HtmlImageElement, name: String) {
    let Some(canvas) = create::<HtmlCanvasElement>("canvas") else { return };
    let (width, height) = (image.natural_width() * SHARPNESS, image.natural_height() * SHARPNESS);
    canvas.set_width(width);
    canvas.set_height(height);
    let context = canvas.get_context("2d").ok().flatten();
    let Some(context) = context.and_then(|context| context.dyn_into::<CanvasRenderingContext2d>().ok())
    else {
        return;
    };
    let (width, height) = (f64::from(width), f64::from(height));
    let _ = context.draw_image_with_html_image_element_and_dw_and_dh(image, 0.0, 0.0, width, height);
    let done = Closure::once_into_js(move |blob: Option<Blob>| {
        if let Some(blob) = blob {
            download_blob(&name, &blob);
        }
    });
    let _ = canvas.to_blob(done.unchecked_ref());
}

/// The element called `id`.
pub(crate) fn element(id: &str) -> Option<Element> {
    document()?.get_element_by_id(id)
}

/// The fragment of the address, with its `#`.
pub(crate) fn fragment() -> String {
    window().and_then(|window| window.location().hash().ok()).unwrap_or_default()
}

/// What this entry of the history keeps.
pub(crate) fn history_state() -> Option<String> {
    window()?.history().ok()?.state().ok()?.as_string()
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

/// Reads the files as text and hands them on, each with its name.
pub(crate) fn read_files(files: Option<FileList>, then: impl FnOnce(Vec<(String, String)>) + 'static) {
    let Some(files) = files else { return };
    let files: Vec<web_sys::File> = (0..files.length()).filter_map(|index| files.get(index)).collect();
    spawn_local(async move {
        let mut texts = Vec::new();
        for file in files {
            if let Some(text) = JsFuture::from(file.text()).await.ok().and_then(|text| text.as_string()) {
                texts.push((file.name(), text));
            }
        }
        if !texts.is_empty() {
            then(texts);
        }
    });
}

/// Whether the window is wide enough for two columns; in step with `styles/page.css`.
pub(crate) fn is_wide() -> bool {
    let query = window().and_then(|window| window.match_media("(min-width: 64.01rem)").ok().flatten());
    query.is_none_or(|query| query.matches())
}
