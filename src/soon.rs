//! Something done as soon as the browser has done what it is at.

use js_sys::{Function, Reflect};
use wasm_bindgen::closure::Closure;
use wasm_bindgen::{JsCast, JsValue};

/// Does `then` in a task of its own. A `Timeout` that is forgotten would hold its closure for good, one more for each time.
pub(crate) fn soon(then: impl FnOnce() + 'static) {
    let timer = Reflect::get(&js_sys::global(), &"setTimeout".into()).ok();
    if let Some(timer) = timer.and_then(|timer| timer.dyn_into::<Function>().ok()) {
        // `setTimeout` without a time: after the browser has drawn and handled what waits.
        // Freed when it has run.
        let _ = timer.call1(&JsValue::UNDEFINED, &Closure::once_into_js(then));
    }
}
