//! The program that reads texts (src/reader/main.rs), called through `reading.js`: the page itself has no readers.

use js_sys::{Function, Promise, Reflect};
use shardscope::session::reader::{ReadReply, ReadTask};
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::{JsFuture, spawn_local};

use super::browser;
use crate::crash;

/// How `index.html` loads `reading.js` into the page.
const LOADER: &str = "loadReading";

/// Outcome of a task.
pub(crate) enum Heard {
    /// It is done.
    Said(ReadReply),
    /// Another task replaced it.
    Superseded,
    /// The program did not arrive, or is from another version.
    Lost,
    /// The program crashed on it, and the page has reported that.
    Broken,
}

/// Runs `task`.
pub(crate) async fn ask(task: &ReadTask) -> Heard {
    // Only the latest text in the box matters; all other tasks need their reply.
    let only = task.is_texts();
    let Some(asked) = asked(&task.written(), only).await else { return Heard::Lost };
    match JsFuture::from(asked).await {
        // `reading.js` answers `undefined` to a task that another one replaced.
        Ok(said) if said.is_undefined() => Heard::Superseded,
        Ok(said) => said.as_string().and_then(|said| ReadReply::read(&said)).map_or(Heard::Lost, Heard::Said),
        // A panic of the program: its message arrives as the error's message.
        Err(fault) => {
            let said = Reflect::get(&fault, &"message".into()).ok().and_then(|said| said.as_string());
            crash::show(&said.unwrap_or_default());
            Heard::Broken
        }
    }
}

/// Loads the program before it is needed.
pub(crate) fn warm() {
    spawn_local(async {
        // If it does not arrive, the first real call reports it.
        let _ = call("warm", &[]).await;
    });
}

async fn asked(task: &str, only: bool) -> Option<Promise> {
    call("ask", &[task.into(), only.into()]).await?.dyn_into().ok()
}

/// Calls a function of `reading.js`.
async fn call(name: &str, given: &[JsValue]) -> Option<JsValue> {
    let window = browser::window()?;
    let load: Function = Reflect::get(&window, &LOADER.into()).ok()?.dyn_into().ok()?;
    let loaded: Promise = load.call0(&window).ok()?.dyn_into().ok()?;
    let reading = JsFuture::from(loaded).await.ok()?;
    let called: Function = Reflect::get(&reading, &name.into()).ok()?.dyn_into().ok()?;
    called.apply(&reading, &given.iter().collect()).ok()
}
