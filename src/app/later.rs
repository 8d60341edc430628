//! The engine's tables (flags, recipes, models, model types, terms), which are loaded from the page's own origin,
//! separately from its program.

use js_sys::Uint8Array;
use wasm_bindgen::JsCast;
use wasm_bindgen_futures::JsFuture;
use web_sys::Response;

use super::browser;
use crate::tables::provide;

/// Their file: the texts of all tables, which `pages/src/frame.rs` writes.
const FILE: &str = "tables.txt";

/// Loads the tables and provides them to the engine; `index.html` prefetches them. False if they cannot be loaded:
/// without them no flag or model is known, so that there is no answer.
pub(crate) async fn load() -> bool {
    bytes().await.is_some_and(|tables| provide(&tables))
}

async fn bytes() -> Option<Vec<u8>> {
    let answer = JsFuture::from(browser::window()?.fetch_with_str(FILE)).await.ok()?;
    let answer: Response = answer.dyn_into().ok()?;
    // A 404 is a response too, with a page as its text.
    if !answer.ok() {
        return None;
    }
    // Bytes are copied directly; a string would be re-encoded character by character before the first answer.
    let buffer = JsFuture::from(answer.array_buffer().ok()?).await.ok()?;
    Some(Uint8Array::new(&buffer).to_vec())
}
