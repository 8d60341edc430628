//! What a panic leaves behind: its message and place, in the console and in the page.
use std::panic;

use web_sys::console;

/// Makes panics report their message and place in the console, and show `#broken` of `index.html`, which says what to
/// copy and where to report it. The engine answers nothing afterwards: a panic ends in a trap.
pub(crate) fn report_panics() {
    panic::set_hook(Box::new(|panic| {
        let fault = panic.to_string();
        console::error_1(&fault.as_str().into());
        show(&fault);
    }));
}

/// The global in which a worker's script finds the message to forward to the page.
const FAULT: &str = "shardscopeFault";

/// `index.html` shows the same for a trap without a panic, as when the stack is used up.
pub(crate) fn show(fault: &str) -> Option<()> {
    // A worker has no window: its script finds the message and forwards it to the page.
    let Some(window) = web_sys::window() else {
        return js_sys::Reflect::set(&js_sys::global(), &FAULT.into(), &fault.into()).ok().map(drop);
    };
    let broken = window.document()?.get_element_by_id("broken")?;
    let place = broken.query_selector("code").ok()??;
    place.set_text_content(Some(fault));
    broken.remove_attribute("hidden").ok()
}
