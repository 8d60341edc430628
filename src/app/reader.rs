//! The program that reads texts (src/reader/main.rs), which `reading.js` asks: the page itself has no reader.

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
    /// Another was asked in its place.
    Superseded,
    /// The program did not arrive, or is of another edition.
    Lost,
    /// The program broke over it, which the page has said.
    Broken,
}

/// Does `task`.
pub(crate) async fn ask(task: &ReadTask) -> Heard {
    // Of the texts in the box only the latest matter; other tasks all want their answer.
    let only = task.is_texts();
    let Some(asked) = asked(&task.written(), only).await else { return Heard::Lost };
    match JsFuture::from(asked).await {
        // `reading.js` answers `undefined` to a task that another took the place of.
        Ok(said) if said.is_undefined() => Heard::Superseded,
        Ok(said) => said.as_string().and_then(|said| ReadReply::read(&said)).map_or(Heard::Lost, Heard::Said),
        // A panic of the program: what it said comes as the error's message.
        Err(fault) => {
            let said = Reflect::get(&fault, &"message".into()).ok().and_then(|said| said.as_string());
            crash::show(&said.unwrap_or_default());
            Heard::Broken
        }
    }
}

/// Has the program at hand before it is asked.
pub(crate) fn warm() {
    spawn_local(async {
        // Where it does not arrive, whoever asks hears of it.
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
