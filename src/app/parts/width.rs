//! How wide an element is, told again whenever it changes.

use wasm_bindgen::JsCast;
use wasm_bindgen::closure::Closure;
use web_sys::{Element, ResizeObserver};
use yew::prelude::*;

/// Widths are told in steps of so many CSS pixels, so that dragging a window does not redraw at every pixel.
const STEP: i32 = 8;

/// The inner width of the element under `node` in CSS pixels, rounded down a little; 0 before it is known.
#[hook]
pub(crate) fn use_width(node: &NodeRef) -> u32 {
    let width = use_state(|| 0_u32);
    {
        let width = width.clone();
        use_effect_with(node.clone(), move |node| {
            let element = node.cast::<Element>();
            let measure = {
                let element = element.clone();
                move || {
                    let wide = element.as_ref().map_or(0, Element::client_width);
                    width.set(u32::try_from(wide / STEP * STEP).unwrap_or(0));
                }
            };
            measure();
            let callback = Closure::<dyn FnMut()>::new(measure);
            let observer = ResizeObserver::new(callback.as_ref().unchecked_ref()).ok();
            if let (Some(observer), Some(element)) = (&observer, &element) {
                observer.observe(element);
            }
            move || {
                if let Some(observer) = observer {
                    observer.disconnect();
                }
                drop(callback);
            }
        });
    }
    *width
}
