//! Files dropped anywhere on the page.

use yew::prelude::*;

use crate::app::browser;
use crate::app::context::use_dispatch;
use crate::app::given_files::take;
use crate::app::hooks::use_window_event;

/// Files may be dropped anywhere on the page, without replacing it. Returns whether some are over it.
#[hook]
pub(super) fn use_drop() -> bool {
    let dispatch = use_dispatch();
    let hovered = use_state_eq(|| false);
    let over = {
        let hovered = hovered.setter();
        use_callback((), move |event: web_sys::Event, ()| {
            // Files only: text dragged over the page belongs to the box.
            if browser::drags_files(&event) {
                // Without this the browser would open a dropped file in place of the page.
                event.prevent_default();
                hovered.set(true);
            }
        })
    };
    let out = {
        let hovered = hovered.setter();
        // Also fired between elements of the page; the next `dragover` sets it again.
        use_callback((), move |_: web_sys::Event, ()| hovered.set(false))
    };
    let drop = {
        let hovered = hovered.setter();
        use_callback(dispatch, move |event: web_sys::Event, dispatch| {
            hovered.set(false);
            if let Some(files) = browser::dropped(&event) {
                event.prevent_default();
                take(dispatch, &files);
            }
        })
    };
    use_window_event("dragover", over);
    use_window_event("dragleave", out);
    use_window_event("drop", drop);
    *hovered
}
