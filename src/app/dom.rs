//! The few things asked of the browser itself. Each may be refused, as in a sandboxed frame, and then does nothing.
//! Elements are taken for what they were made as by the views: to ask the browser again costs a call and its glue.

use js_sys::Reflect;
use wasm_bindgen::closure::Closure;
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::{JsFuture, spawn_local};
use web_sys::{
    Blob, BlobPropertyBag, CanvasRenderingContext2d, Document, DragEvent, Element, FileList,
    HtmlAnchorElement, HtmlCanvasElement, HtmlDialogElement, HtmlElement, HtmlImageElement, HtmlInputElement,
    HtmlTextAreaElement, Storage, Url, window,
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

/// What the address says of `name` behind its question mark.
pub(crate) fn parameter(name: &str) -> Option<String> {
    let search = window()?.location().search().ok()?;
    let said = search.split(['?', '&']).find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
    said.map(str::to_owned)
}

/// The first element that matches `css`.
pub(crate) fn query(css: &str) -> Option<Element> {
    document()?.query_selector(css).ok().flatten()
}

/// The text that `target` has as its property `name`.
pub(crate) fn property(target: &JsValue, name: &str) -> Option<String> {
    Reflect::get(target, &name.into()).ok()?.as_string()
}

/// The number that `target` has as its property `name`.
pub(crate) fn number(target: &JsValue, name: &str) -> Option<f64> {
    Reflect::get(target, &name.into()).ok()?.as_f64()
}

/// What a field or a choice holds.
pub(crate) fn value_of(field: &JsValue) -> String {
    property(field, "value").unwrap_or_default()
}

/// What the field that was heard holds, or the first one of the form that was; `open` of details that are.
pub(crate) fn heard(event: &web_sys::Event) -> String {
    let Some(target) = event.target() else { return String::new() };
    let Some(element) = target.dyn_ref::<Element>() else { return String::new() };
    match element.tag_name().as_str() {
        "FORM" => match element.query_selector(".field") {
            Ok(Some(field)) => value_of(&field),
            _ => String::new(),
        },
        "DETAILS" if element.has_attribute("open") => "open".to_owned(),
        _ => value_of(element),
    }
}

/// Selects everything in `field`, which holds text.
pub(crate) fn select_all(field: &Element) {
    let field = field.unchecked_ref::<HtmlTextAreaElement>();
    let _ = field.focus();
    field.select();
}

/// Whether Ctrl or Cmd is held.
pub(crate) fn has_command(event: &web_sys::Event) -> bool {
    let held = |name: &str| Reflect::get(event, &name.into()).is_ok_and(|held| held.is_truthy());
    held("ctrlKey") || held("metaKey")
}

/// Opens the sheet that lies over the page, if there is one.
pub(crate) fn show_dialog() {
    if let Some(dialog) = dialog() {
        let _ = dialog.show_modal();
    }
}

/// The sheet that lies over the page.
fn dialog() -> Option<HtmlDialogElement> {
    Some(query("dialog")?.unchecked_into())
}

/// Closes the sheet that lies over the page, if there is one.
pub(crate) fn close_dialog() {
    if let Some(dialog) = dialog() {
        dialog.close();
    }
}

/// Whether it was the sheet itself that was pressed, and nothing on it.
pub(crate) fn is_dialog(event: &web_sys::Event) -> bool {
    let pressed = event.target().and_then(|target| property(&target, "localName"));
    pressed.as_deref() == Some("dialog")
}

/// Opens what holds `place`, if it is closed, and brings it into view.
pub(crate) fn bring(place: &Element) {
    if let Ok(Some(closed)) = place.closest("details:not([open])") {
        let _ = closed.set_attribute("open", "");
    }
    place.scroll_into_view();
}

/// Gives the focus to `place` without moving the page.
pub(crate) fn focus(place: &Element) {
    if !place.has_attribute("tabindex") {
        let _ = place.set_attribute("tabindex", "-1");
    }
    let options = web_sys::FocusOptions::new();
    options.set_prevent_scroll(true);
    let _ = place.unchecked_ref::<HtmlElement>().focus_with_options(&options);
}

/// Gives the focus to the map's cursor.
pub(crate) fn focus_cursor() {
    if let Some(cursor) = query(".cursor") {
        // Elements of pictures take the focus as those of text do.
        let _ = cursor.unchecked_into::<HtmlElement>().focus();
    }
}

/// The script box's underlines and line numbers move with it.
pub(crate) fn scroll_along() {
    let Some(area) = script_box() else { return };
    for css in [".marks", ".gutter"] {
        if let Some(beside) = query(css) {
            beside.set_scroll_top(area.scroll_top());
            beside.set_scroll_left(area.scroll_left());
        }
    }
}

/// The script box.
pub(crate) fn script_box() -> Option<HtmlTextAreaElement> {
    Some(element("script")?.unchecked_into())
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
    Some(document()?.create_element(name).ok()?.unchecked_into())
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
    let Some(context) = context.map(JsCast::unchecked_into::<CanvasRenderingContext2d>) else { return };
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
pub(crate) fn copy(text: &str, done: Box<dyn FnOnce(bool)>) {
    let Some(navigator) = window().map(|window| window.navigator()) else { return done(false) };
    // Without a secure context there is no clipboard at all.
    let clipboard = Reflect::get(&navigator, &"clipboard".into());
    if clipboard.is_ok_and(|clipboard| clipboard.is_undefined()) {
        return done(false);
    }
    let promise = navigator.clipboard().write_text(text);
    spawn_local(async move { done(JsFuture::from(promise).await.is_ok()) });
}

/// Reads the files dropped with `event` as text and hands them on; whether there are any.
pub(crate) fn dropped(event: &web_sys::Event, then: impl FnOnce(Vec<(String, String)>) + 'static) -> bool {
    let event = event.unchecked_ref::<DragEvent>();
    let files = event.data_transfer().and_then(|data| data.files());
    // Dropped text is the script box's own affair.
    let files = files.filter(|files| files.length() > 0);
    let any = files.is_some();
    read_files(files, Box::new(then));
    any
}

/// The files chosen in the field that was heard.
pub(crate) fn chosen(event: &web_sys::Event) -> Option<FileList> {
    event.target()?.unchecked_into::<HtmlInputElement>().files()
}

type Read = Box<dyn FnOnce(Vec<(String, String)>)>;

/// Reads the files as text and hands them on, each with its name.
pub(crate) fn read_files(files: Option<FileList>, then: Read) {
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
