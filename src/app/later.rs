//! What the first answer does not need, from the page's own origin after it: the tables of recipes by name.

use js_sys::Reflect;
use shardscope::launch::formats::recipes::provide_recipes;
use shardscope::session::Event;
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::{JsFuture, spawn_local};
use web_sys::Response;
use yew::prelude::*;

use super::browser;
use super::context::Dispatch;

/// The tables' files, in the order of [`provide_recipes`]. `index.html` asks for them ahead where there may be a text.
const FILES: [&str; 2] = ["bridge.tsv", "titan.tsv"];
/// Where `worker.js` leaves them.
const RECIPES: &str = "recipes";

/// Gets the tables and hands them to the engine. Without them, as offline at a first visit, no recipe is known by its name,
/// which the answer then says.
pub(crate) async fn load() {
    let (bridge, titan) = (text(FILES[0]).await, text(FILES[1]).await);
    if let (Some(bridge), Some(titan)) = (bridge, titan) {
        provide_recipes(bridge, titan);
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

/// Gets them once the page stands, and reads what the reader has brought meanwhile once more.
#[hook]
pub(crate) fn use_recipes(dispatch: &Dispatch) {
    let dispatch = dispatch.clone();
    use_effect_with((), move |()| {
        spawn_local(async move {
            load().await;
            dispatch.emit(Event::Reread.into());
        });
    });
}

/// In a worker: the tables as `worker.js` got them.
pub(crate) fn take_over(scope: &JsValue) {
    let Ok(texts) = Reflect::get(scope, &RECIPES.into()) else { return };
    let text = |place: u32| Reflect::get_u32(&texts, place).ok()?.as_string();
    if let (Some(bridge), Some(titan)) = (text(0), text(1)) {
        provide_recipes(bridge, titan);
    }
}
