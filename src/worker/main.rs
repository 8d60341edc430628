//! Searches, questions, downloads and the reading of files that tools of a run wrote, as a separate module that the page loads when the first one is requested
//! (src/app/beside.rs): `search.js` starts it, in a worker or in the page itself. Looking at an answer never waits
//! for it.
#[path = "../crash.rs"]
mod crash;
#[path = "../soon.rs"]
mod soon;
#[path = "../tables.rs"]
mod tables;

use std::cell::RefCell;
use std::rc::Rc;

use js_sys::Function;
use shardscope::session::beside::{Measurement, Progress, Working};
use soon::soon;
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

fn main() {
    crash::report_panics();
}

/// Candidates evaluated between two clock checks: a shape with all its chunks takes a millisecond or two.
const AT_ONCE: u64 = 1;

/// Time until the first report; each further interval is twice as long, up to the requested one: the user waits for
/// the first layout, but not for the tenth. Unit: millisecond.
const FIRST_SLICE: f64 = 12.0;

/// Runs `task`, a serialised [`shardscope::session::beside::Task`], and calls `tell` with the serialised result so
/// far after every `slice` milliseconds, sooner at first, and at the end. It continues until it is done or `tell`
/// returns false. `tables` are the engine's.
///
/// # Errors
/// If the tables or the task are not from this version.
#[wasm_bindgen]
pub fn work(tables: &[u8], task: &str, slice: f64, tell: Function) -> Result<(), JsValue> {
    if !tables::provide(tables) {
        return Err("the engine's tables belong to another version of the page".into());
    }
    // Parsed once, here: a task that cannot begin is refused before anything is reported.
    let working = Working::begin(task).ok_or("the task belongs to another version of the page")?;
    go_on(Rc::new(RefCell::new(working)), slice.min(FIRST_SLICE), slice, tell);
    Ok(())
}

/// Reads a file of the run's own tools; the result is serialised like that of [`work`].
#[wasm_bindgen]
#[must_use]
pub fn measure(bytes: &[u8]) -> String {
    Progress::Measured(Measurement::new(bytes)).written()
}

/// Runs one slice now, and the next after other pending tasks.
fn go_on(working: Rc<RefCell<Working>>, now: f64, slice: f64, tell: Function) {
    let until = js_sys::Date::now() + now;
    let mut more = true;
    // The clock is checked between steps, since a step cannot be interrupted.
    while more && js_sys::Date::now() < until {
        more = working.borrow_mut().step(AT_ONCE);
    }
    let progress_text = working.borrow().progress_text();
    let answer = tell.call1(&JsValue::NULL, &progress_text.into());
    // An error in `tell` (a page that has gone) counts as the answer false.
    if more && answer.is_ok_and(|answer| answer.as_bool() != Some(false)) {
        soon(move || go_on(working, (now * 2.0).min(slice), slice, tell));
    }
}
