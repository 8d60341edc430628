//! The few calls to the browser itself. Each may be refused, as in a sandboxed frame, and then does nothing:
//! `gloo::storage` would panic there.

use gloo::file::{Blob, FileList, ObjectUrl};
use js_sys::{Reflect, Uint8Array};
use wasm_bindgen::closure::Closure;
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::{JsFuture, spawn_local};
use web_sys::{
    CanvasRenderingContext2d, Document, DragEvent, Element, HtmlAnchorElement, HtmlCanvasElement,
    HtmlElement, HtmlImageElement, HtmlTextAreaElement, Storage, Window,
};

/// The key under which the input is stored for the next visit.
pub(crate) const INPUT: &str = "shardscope.hand";
/// The key under which the theme is stored; read by `index.html` before the first paint.
pub(crate) const THEME: &str = "shardscope.theme";

/// The window; `None` while the page is prerendered on the build machine, where any call to a browser panics.
pub(crate) fn window() -> Option<Window> {
    // A constant of the target: `web_sys` compiles natively as well, and panics when called.
    if cfg!(target_arch = "wasm32") { web_sys::window() } else { None }
}

/// Calls `then` once what was drawn last is on screen.
pub(crate) fn after_paint(then: impl FnOnce() + 'static) {
    // A frame that begins is painted before queued tasks run.
    let frame = Closure::once_into_js(move || crate::soon::soon(then));
    if let Some(window) = window() {
        let _ = window.request_animation_frame(frame.unchecked_ref());
    }
}

/// Sends the window an event called `name`.
pub(crate) fn tell(name: &str) {
    if let (Some(window), Ok(event)) = (window(), web_sys::Event::new(name)) {
        // False if a listener prevented it, which does not matter here.
        let _ = window.dispatch_event(&event);
    }
}

pub(crate) fn document() -> Option<Document> {
    window()?.document()
}

fn storage() -> Option<Storage> {
    window()?.local_storage().ok().flatten()
}

/// Number of cores for workers, at most `most`; 1 if the browser does not say.
pub(crate) fn cores(most: u8) -> u8 {
    let cores = window().map_or(0.0, |window| window.navigator().hardware_concurrency());
    // With privacy settings, fractions and zero are possible answers.
    (1..=most).rev().find(|count| f64::from(*count) <= cores).unwrap_or(1)
}

/// The value stored under `key`.
pub(crate) fn stored(key: &str) -> Option<String> {
    storage()?.get_item(key).ok().flatten()
}

/// Stores `value` under `key` if the browser allows it.
pub(crate) fn keep(key: &str, value: &str) {
    if let Some(storage) = storage() {
        // Storage may be full or forbidden; the page works without.
        let _ = storage.set_item(key, value);
    }
}

/// Sets the theme, or follows the system again.
pub(crate) fn set_theme(theme: Option<&str>) {
    let Some(root) = document().and_then(|document| document.document_element()) else { return };
    let _ = match theme {
        None => root.remove_attribute("data-theme"),
        // Without the attribute the style sheet follows the system.
        Some(theme) => root.set_attribute("data-theme", theme),
    };
}

/// Sets the page's title.
pub(crate) fn set_title(title: &str) {
    if let Some(document) = document() {
        document.set_title(title);
    }
}

/// The value of the query parameter `name`.
pub(crate) fn parameter(name: &str) -> Option<String> {
    let search = window()?.location().search().ok()?;
    let said = search.split(['?', '&']).find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
    said.map(str::to_owned)
}

/// The element called `id`.
pub(crate) fn element(id: &str) -> Option<Element> {
    document()?.get_element_by_id(id)
}

/// The first element that matches `css`.
pub(crate) fn query(css: &str) -> Option<Element> {
    document()?.query_selector(css).ok().flatten()
}

/// The value of the field or select that fired the event.
pub(crate) fn value_of(event: &web_sys::Event) -> String {
    // By property name: inputs, selects and text areas have no common type with a value.
    let value = event.target().and_then(|field| Reflect::get(&field, &"value".into()).ok());
    value.and_then(|value| value.as_string()).unwrap_or_default()
}

/// The value of the field `id`.
pub(crate) fn value_in(id: &str) -> String {
    let value = element(id).and_then(|field| Reflect::get(&field, &"value".into()).ok());
    value.and_then(|value| value.as_string()).unwrap_or_default()
}

/// Whether the command modifier is held: Ctrl, or Cmd on a Mac.
pub(crate) fn has_command(event: &web_sys::Event) -> bool {
    // Keyboard and pointer events both have these properties.
    let held = |name: &str| Reflect::get(event, &name.into()).is_ok_and(|held| held.is_truthy());
    held("ctrlKey") || held("metaKey")
}

/// Selects the UTF-16 units from `start` to `end` in the script box and brings line `line` (from 1) of `lines` into view.
pub(crate) fn select(area: &HtmlTextAreaElement, start: u32, end: u32, line: u32, lines: u32) {
    let _ = area.focus();
    let _ = area.set_selection_range(start, end);
    // Line height of the box as laid out, which the user may have changed by zooming.
    let height = area.scroll_height() / i32::try_from(lines.max(1)).unwrap_or(1);
    // Some lines above stay visible, for context.
    let above = i32::try_from(line.saturating_sub(4)).unwrap_or(0);
    area.set_scroll_top(above * height);
    area.set_scroll_left(0);
}

/// The script box.
pub(crate) fn script_box() -> Option<HtmlTextAreaElement> {
    element("script")?.dyn_into().ok()
}

/// Focuses `place` without scrolling the page.
pub(crate) fn focus(place: &Element) {
    // Elements without a tab stop need one to take the focus; -1 keeps them out of the tab order.
    if !place.has_attribute("tabindex") {
        let _ = place.set_attribute("tabindex", "-1");
    }
    let options = web_sys::FocusOptions::new();
    options.set_prevent_scroll(true);
    if let Some(place) = place.dyn_ref::<HtmlElement>() {
        let _ = place.focus_with_options(&options);
    }
}

/// Opens the element that contains `place` if it is closed, and scrolls it into view.
pub(crate) fn bring(place: &Element) {
    // Scrolling into a closed `details` would have no effect.
    if let Ok(Some(closed)) = place.closest("details:not([open])") {
        let _ = closed.set_attribute("open", "");
    }
    place.scroll_into_view();
}

/// Offers `text` as a file download.
pub(crate) fn download(name: &str, kind: &str, text: &str) {
    give(name, Blob::new_with_options(text, Some(kind)));
}

fn create<T: JsCast>(name: &str) -> Option<T> {
    document()?.create_element(name).ok()?.dyn_into().ok()
}

fn give(name: &str, blob: Blob) {
    let url = ObjectUrl::from(blob);
    if let Some(link) = create::<HtmlAnchorElement>("a") {
        link.set_href(&url);
        link.set_download(name);
        // Clicking a link from the program is the only way to name a downloaded file.
        link.click();
    }
}

/// Device pixels per CSS pixel of a drawn picture.
const SHARPNESS: u32 = 2;

/// Draws the SVG `picture` and offers it as a PNG download.
pub(crate) fn download_png(name: &str, picture: &str) {
    let url = ObjectUrl::from(Blob::new_with_options(picture, Some("image/svg+xml")));
    let Some(image) = create::<HtmlImageElement>("img") else { return };
    let name = name.to_owned();
    // `decode` needs the source to be set first.
    image.set_src(&url);
    spawn_local(async move {
        if JsFuture::from(image.decode()).await.is_ok() {
            draw(&image, name);
        }
        // The URL must stay valid until the picture has been drawn.
        drop(url);
    });
}

fn draw(image: &HtmlImageElement, name: String) {
    let Some(canvas) = create::<HtmlCanvasElement>("canvas") else { return };
    let (width, height) = (image.natural_width() * SHARPNESS, image.natural_height() * SHARPNESS);
    // A canvas starts at 300 x 150 and clips anything larger.
    canvas.set_width(width);
    canvas.set_height(height);
    let context = canvas.get_context("2d").ok().flatten();
    let Some(context) = context.and_then(|context| context.dyn_into::<CanvasRenderingContext2d>().ok())
    else {
        return;
    };
    let (width, height) = (f64::from(width), f64::from(height));
    let _ = context.draw_image_with_html_image_element_and_dw_and_dh(image, 0.0, 0.0, width, height);
    let done = Closure::once_into_js(move |blob: Option<web_sys::Blob>| {
        if let Some(blob) = blob {
            give(&name, blob.into());
        }
    });
    let _ = canvas.to_blob(done.unchecked_ref());
}

/// The fragment of the address, with its `#`.
pub(crate) fn fragment() -> String {
    window().and_then(|window| window.location().hash().ok()).unwrap_or_default()
}

/// The state of this history entry. `gloo::history` would lose it at a reload.
pub(crate) fn history_state() -> Option<String> {
    window()?.history().ok()?.state().ok()?.as_string()
}

/// Makes `address`, with `state`, a `new` history entry, or replaces the current one.
pub(crate) fn write_history(address: &str, state: &str, new: bool) {
    let Some(history) = window().and_then(|window| window.history().ok()) else { return };
    let state = JsValue::from_str(state);
    let _ = if new {
        history.push_state_with_url(&state, "", Some(address))
    } else {
        history.replace_state_with_url(&state, "", Some(address))
    };
}

/// Copies `text` to the clipboard; `done` is told whether that was allowed.
pub(crate) fn copy(text: &str, done: impl FnOnce(bool) + 'static) {
    let Some(navigator) = window().map(|window| window.navigator()) else { return done(false) };
    // Without a secure context there is no clipboard at all.
    let clipboard = Reflect::get(&navigator, &"clipboard".into());
    if clipboard.is_ok_and(|clipboard| clipboard.is_undefined()) {
        return done(false);
    }
    let promise = navigator.clipboard().write_text(text);
    spawn_local(async move { done(JsFuture::from(promise).await.is_ok()) });
}

/// The files that are dragged over the page or were dropped on it; `None` for text, which the script box handles.
pub(crate) fn dropped(event: &web_sys::Event) -> Option<FileList> {
    let files = event.dyn_ref::<DragEvent>()?.data_transfer()?.files()?;
    (files.length() > 0).then(|| files.into())
}

/// Whether files are being dragged over the page.
pub(crate) fn drags_files(event: &web_sys::Event) -> bool {
    let types = event.dyn_ref::<DragEvent>().and_then(DragEvent::data_transfer).map(|data| data.types());
    types.is_some_and(|types| types.iter().any(|kind| kind.as_string().as_deref() == Some("Files")))
}

/// The text of a file.
pub(crate) async fn text_of(file: &web_sys::File) -> Option<String> {
    JsFuture::from(file.text()).await.ok()?.as_string()
}

/// The first `count` bytes of a file, or all it has.
pub(crate) async fn beginning_of(file: &web_sys::File, count: i32) -> Option<Vec<u8>> {
    let part = file.slice_with_i32_and_i32(0, count).ok()?;
    Some(Uint8Array::new(&JsFuture::from(part.array_buffer()).await.ok()?).to_vec())
}

/// Whether the address asks for a single view (`?embed=…`), as frames of other pages do.
pub(crate) fn is_embedded() -> bool {
    parameter("embed").is_some()
}
