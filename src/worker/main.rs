//! Searches, questions and files to take away, as a module of their own that the page loads when the first one is asked for
//! (src/app/beside.rs): it is started by `search.js`, in a worker or in the page itself. Whoever looks at an answer alone never waits for it.
#[path = "../crash.rs"]
mod crash;
#[path = "../soon.rs"]
mod soon;
#[path = "../tables.rs"]
mod tables;

use std::cell::RefCell;
use std::rc::Rc;

use js_sys::Function;
use shardscope::session::beside::Working;
use soon::soon;
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

fn main() {
    crash::report_panics();
}

/// Things looked at between two looks at the clock: a shape with all its chunks takes a millisecond or two.
const AT_ONCE: u64 = 1;

/// Time until the first is told of what is known; each further time is twice as long, up to what was asked for: somebody waits
/// for the first layout, and nobody for the tenth. Unit: millisecond.
const FIRST_SLICE: f64 = 12.0;

/// Works on `task`, a text of [`shardscope::session::beside::Task`], and gives `tell` a text of what is known after every
/// `slice` milliseconds, sooner at first, and at the end. It goes on until it is done or `tell` returns false. `tables` are the engine's.
///
/// # Errors
/// Where the tables or the task are not of this edition.
#[wasm_bindgen]
pub fn work(tables: &[u8], task: &str, slice: f64, tell: Function) -> Result<(), JsValue> {
    if !tables::provide(tables) {
        return Err("the engine's tables belong to another version of the page".into());
    }
    // Parsed once, here: what cannot begin is refused before anything is told.
    let working = Working::begin(task).ok_or("the task belongs to another version of the page")?;
    go_on(Rc::new(RefCell::new(working)), slice.min(FIRST_SLICE), slice, tell);
    Ok(())
}

/// One slice now, and the next when whoever else has something to do has done it.
fn go_on(working: Rc<RefCell<Working>>, now: f64, slice: f64, tell: Function) {
    let until = js_sys::Date::now() + now;
    let mut more = true;
    // The clock is asked between steps, as one step cannot be interrupted.
    while more && js_sys::Date::now() < until {
        more = working.borrow_mut().step(AT_ONCE);
    }
    let told = working.borrow().told();
    let answer = tell.call1(&JsValue::NULL, &told.into());
    // An error of `tell` (a page that has gone) goes on as if it were answered no.
    if more && answer.is_ok_and(|answer| answer.as_bool() != Some(false)) {
        soon(move || go_on(working, (now * 2.0).min(slice), slice, tell));
    }
}
