//! The readers of texts, as a module of their own: `reader.js` starts it in a worker, where no text however long holds the
//! page up, and `reading.js` in the page itself where there is none. Plans made of settings alone never need it.
#[path = "../crash.rs"]
mod crash;
#[path = "../tables.rs"]
mod tables;

use shardscope::session::reader::reply;
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

fn main() {
    crash::report_panics();
}

/// Gives the readers the engine's tables, before anything is read.
///
/// # Errors
/// Where they are not of this edition.
#[wasm_bindgen]
pub fn begin(tables: &[u8]) -> Result<(), JsValue> {
    if tables::provide(tables) {
        Ok(())
    } else {
        Err("the engine's tables belong to another version of the page".into())
    }
}

/// Does `task`, a text of [`shardscope::session::reader::ReadTask`]; nothing where it is of another edition.
#[wasm_bindgen]
#[must_use]
pub fn read(task: &str) -> Option<String> {
    reply(task)
}
