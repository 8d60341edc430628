//! What the first answer does not need, from the page's own origin after it: tables of recipes, models and model types.

use js_sys::Reflect;
use shardscope::launch::{TABLES, provide_tables};
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::{JsFuture, spawn_local};
use web_sys::Response;
use yew::prelude::*;

use super::action::Action;
use super::browser;
use super::context::Dispatch;

/// Where `worker.js` leaves them.
const LEFT: &str = "tables";

/// Gets the tables and hands them to the engine; `index.html` asks for them ahead where there may be a text. Without them, as
/// offline at a first visit, no model or recipe is known by its name, which the answer then says.
pub(crate) async fn load() {
    let mut tables = Vec::new();
    for file in TABLES {
        tables.extend(text(file).await);
    }
    if let Ok(tables) = tables.try_into() {
        provide_tables(tables);
    }
}

async fn text(file: &str) -> Option<String> {
    let answer = JsFuture::from(browser::window()?.fetch_with_str(file)).await.ok()?;
    let answer: Response = answer.dyn_into().ok()?;
    if !answer.ok() {
        return None;
    }
    JsFuture::from(answer.text().ok()?).await.ok()?.as_string()
}

/// Gets them once the page stands; what the reader has brought or chosen meanwhile is then read once more.
#[hook]
pub(crate) fn use_tables(dispatch: &Dispatch) {
    let dispatch = dispatch.clone();
    use_effect_with((), move |()| {
        spawn_local(async move {
            load().await;
            dispatch.emit(Action::Tables);
        });
    });
}

/// In a worker: the tables as `worker.js` got them.
pub(crate) fn take_over(scope: &JsValue) {
    let Ok(left) = Reflect::get(scope, &LEFT.into()) else { return };
    let text = |place: u32| Reflect::get_u32(&left, place).ok()?.as_string();
    let tables: Vec<String> = (0_u32..).take(TABLES.len()).filter_map(text).collect();
    if let Ok(tables) = tables.try_into() {
        provide_tables(tables);
    }
}
