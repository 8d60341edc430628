//! The text readers, as a separate module: `reader.js` starts it in a worker, where even a long text does not block
//! the page, and `reading.js` in the page itself if there are no workers. Plans made only from settings never need
//! it.
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
/// If they are not from this version.
#[wasm_bindgen]
pub fn begin(tables: &[u8]) -> Result<(), JsValue> {
    if tables::provide(tables) {
        Ok(())
    } else {
        Err("the engine's tables belong to another version of the page".into())
    }
}

/// Runs `task`, a serialised [`shardscope::session::reader::ReadTask`]; `None` if it is from another version.
#[wasm_bindgen]
#[must_use]
pub fn read(task: &str) -> Option<String> {
    reply(task)
}
