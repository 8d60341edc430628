//! The engine in a worker beside the page: it does one task, and tells what it finds.

use js_sys::Reflect;
use shardscope::session::restore;
use wasm_bindgen::JsCast;
use web_sys::DedicatedWorkerGlobalScope;

use super::beside::{self, ASKED, Task, Work};
use super::later::take_over;
use super::question;

/// This side of the engine in a worker; none in a page.
pub(crate) fn scope() -> Option<DedicatedWorkerGlobalScope> {
    js_sys::global().dyn_into().ok()
}

/// Does what the page left, and tells what is found on the way and at the end.
pub(crate) fn serve(scope: &DedicatedWorkerGlobalScope) {
    take_over(scope);
    let asked = Reflect::get(scope, &ASKED.into()).ok().and_then(|asked| asked.as_string());
    let task = asked.and_then(|asked| serde_json::from_str::<Task>(&asked).ok());
    let kept = task.as_ref().and_then(|task| restore(&task.kept));
    let (Some(Task { work, .. }), Some(kept)) = (task, kept) else { return beside::tell(scope, None) };
    match work {
        Work::Layouts { part, parts } => beside::search(scope, kept.input, part, parts),
        Work::Question(asked) => question::serve(scope, &kept.input, &asked),
    }
}
