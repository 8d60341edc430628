//! The engine's tables (flags, recipes, models, model types, terms), which come from the page's own origin beside its program.

use std::collections::HashMap;

use js_sys::Reflect;
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;
use web_sys::Response;

use super::browser;

/// Where they lie: a JSON object with the text of each table by its name, which `pages/src/frame.rs` writes.
const FILE: &str = "tables.json";
/// Where `worker.js` leaves them.
const LEFT: &str = "tables";

/// Gets the tables and hands them to the engine; `index.html` asks for them ahead. False where they cannot be had: without them
/// no flag or model is known, so that there is no answer.
pub(crate) async fn load() -> bool {
    text().await.is_some_and(|tables| provide(&tables))
}

async fn text() -> Option<String> {
    let answer = JsFuture::from(browser::window()?.fetch_with_str(FILE)).await.ok()?;
    let answer: Response = answer.dyn_into().ok()?;
    if !answer.ok() {
        return None;
    }
    JsFuture::from(answer.text().ok()?).await.ok()?.as_string()
}

/// Gives each of the engine's tables its text; false where one is missing.
pub(crate) fn provide(tables: &str) -> bool {
    let Ok(mut texts) = serde_json::from_str::<HashMap<String, String>>(tables) else { return false };
    shardscope::tables().all(|table| texts.remove(table.name()).map(|text| table.provide(text)).is_some())
}

/// In a worker: the tables as `worker.js` got them.
pub(crate) fn take_over(scope: &JsValue) {
    if let Some(tables) = Reflect::get(scope, &LEFT.into()).ok().and_then(|left| left.as_string()) {
        provide(&tables);
    }
}
