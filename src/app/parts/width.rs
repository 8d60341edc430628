//! How wide an element is, told again whenever it changes.

use wasm_bindgen::JsCast;
use wasm_bindgen::closure::Closure;
use web_sys::{Element, ResizeObserver};

use crate::app::act::{Act, Hear, tell};

/// Widths are told in steps of so many CSS pixels, so that dragging a window does not redraw at every pixel.
const STEP: i32 = 8;

/// Watches an element as long as it is kept.
pub(crate) struct Width {
    observer: ResizeObserver,
    _told: Closure<dyn FnMut()>,
}

impl Width {
    /// Tells the inner width of `element` in CSS pixels, rounded down a little, now and whenever it changes.
    pub(crate) fn watch(element: Element, hear: Hear) -> Option<Self> {
        let watched = element.clone();
        let mut last = 0;
        let told = Closure::<dyn FnMut()>::new(move || {
            let width = u32::try_from(element.client_width() / STEP * STEP).unwrap_or(0);
            if width != last {
                last = width;
                tell(&hear, Act::Widen(width));
            }
        });
        let observer = ResizeObserver::new(told.as_ref().unchecked_ref()).ok()?;
        observer.observe(&watched);
        Some(Self { observer, _told: told })
    }
}

impl Drop for Width {
    fn drop(&mut self) {
        self.observer.disconnect();
    }
}
