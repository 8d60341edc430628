//! Running something as soon as the browser has finished its current task.

use js_sys::{Function, Reflect};
use wasm_bindgen::closure::Closure;
use wasm_bindgen::{JsCast, JsValue};

/// Runs `then` in a separate task. A forgotten `Timeout` would leak its closure, one for each call.
pub(crate) fn soon(then: impl FnOnce() + 'static) {
    let timer = Reflect::get(&js_sys::global(), &"setTimeout".into()).ok();
    if let Some(timer) = timer.and_then(|timer| timer.dyn_into::<Function>().ok()) {
        // `setTimeout` without a time: after the browser has drawn and handled pending events. Freed once it has run.
        let _ = timer.call1(&JsValue::UNDEFINED, &Closure::once_into_js(then));
    }
}
