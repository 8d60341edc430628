//! The zoom of the map: levels from racks to single GPUs, by buttons, keys and the wheel, and the part that is in the
//! frame.

use std::ops::Range;

use shardscope::session::map::Geometry;
use wasm_bindgen::JsValue;
use web_sys::Element;
use yew::prelude::*;

/// How much is drawn above and below the visible part, so that scrolling shows no gap. Unit of lengths: CSS pixel.
const BEYOND: u32 = 350;
/// How far is scrolled before the next part is drawn.
const BLOCK: i32 = 300;
/// The height of the frame before it is known.
const USUAL: u32 = 800;

/// The visible part of the map.
#[derive(Clone, Copy, Default, PartialEq)]
pub(super) struct View {
    /// Levels closer than the full view.
    pub closer: usize,
    /// How far the frame is scrolled, in blocks.
    block: i32,
    /// How high the frame is; 0 before it is known.
    high: u32,
}

impl View {
    /// The same when the frame is scrolled.
    pub(super) fn scrolled(self, frame: &Element) -> Self {
        let high = u32::try_from(frame.client_height()).unwrap_or(0);
        // In blocks: the state changes a few times a screen, not at every pixel.
        Self { block: frame.scroll_top() / BLOCK, high, ..self }
    }

    /// One level closer, or further with a negative one; within the levels available for this many GPUs.
    pub(super) fn zoomed(self, by: isize, gpus: u64) -> Self {
        let closer = self.closer.saturating_add_signed(by).min(Geometry::levels(gpus));
        Self { closer, ..self }
    }

    /// The same with GPU `gpu` of `geometry` in the middle of `frame`, where [`centre`] scrolls to: draws what comes
    /// into view at once, rather than first drawing the old position in the new picture.
    pub(super) fn around(self, frame: &Element, geometry: &Geometry, gpu: u64) -> Self {
        let whole = i32::try_from(geometry.size().1).unwrap_or(i32::MAX);
        let middle = i32::try_from(geometry.cell(gpu).middle().1).unwrap_or(i32::MAX);
        let high = frame.client_height();
        let top = (middle - high / 2).clamp(0, whole.saturating_sub(high).max(0));
        Self { block: top / BLOCK, high: u32::try_from(high).unwrap_or(0), ..self }
    }

    /// The nodes that are drawn.
    pub(super) fn nodes(self, geometry: &Geometry) -> Range<u64> {
        let top = u32::try_from(self.block.saturating_mul(BLOCK)).unwrap_or(0);
        // At least a usual height, since the frame is measured only once it scrolls.
        geometry.nodes_between(top.saturating_sub(BEYOND), top + self.high.max(USUAL) + BEYOND)
    }
}

/// Scrolls `frame` so that GPU `gpu` is in its middle.
pub(super) fn centre(frame: &Element, geometry: &Geometry, gpu: u64) {
    let (x, y) = geometry.cell(gpu).middle();
    // Browsers clamp positions outside, so the edges need no special handling here.
    let to = |place: u32, room: i32| i32::try_from(place).unwrap_or(i32::MAX) - room / 2;
    frame.set_scroll_top(to(y, frame.client_height()));
    frame.set_scroll_left(to(x, frame.client_width()));
}

/// How far two fingers are apart; `None` unless there are two.
pub(super) fn fingers_apart(event: &TouchEvent) -> Option<f64> {
    // By reflection: the touch types would need another feature of web-sys.
    let get = |of: &JsValue, name: &str| js_sys::Reflect::get(of, &name.into()).ok();
    let touches = get(event, "touches")?;
    (get(&touches, "length")?.as_f64()? == 2.0).then_some(())?;
    let (one, other) = (get(&touches, "0")?, get(&touches, "1")?);
    let between = |name| Some(get(&one, name)?.as_f64()? - get(&other, name)?.as_f64()?);
    Some(between("clientX")?.hypot(between("clientY")?))
}

/// By how many levels to zoom in when fingers that were `last` apart are now `now` apart: one level per 50 % of
/// further spread, or one level out when they close as far.
pub(super) fn pinched(last: &mut Option<f64>, now: Option<f64>) -> Option<isize> {
    // Two fingers that start on one point would spread infinitely.
    let spread = now? / (*last)?.max(1.0);
    let by = if spread > 1.5 {
        1
    } else if spread < 1.0 / 1.5 {
        -1
    } else {
        return None;
    };
    // Updated only after a level change, so that small movements add up.
    *last = now;
    Some(by)
}

#[derive(Properties, PartialEq)]
pub(super) struct ZoomProps {
    pub view: View,
    pub gpus: u64,
    pub zoom: Callback<isize>,
}

/// The buttons that look closer and further; empty if every GPU already shows its text.
#[component(Zoom)]
pub(super) fn zoom(props: &ZoomProps) -> Html {
    let levels = Geometry::levels(props.gpus);
    if levels == 0 {
        return html!();
    }
    let button = |by: isize, sign: &'static str, label: &'static str, can: bool| {
        let zoom = props.zoom.clone();
        html! {
            <button
                type="button"
                class="button small"
                aria-label={label}
                disabled={!can}
                onclick={move |_| zoom.emit(by)}
            >{ sign }</button>
        }
    };
    html! {
        <div class="zoom" role="group" aria-label="Zoom">
            { button(1, "+", "closer", props.view.closer < levels) }
            { button(-1, "−", "further", props.view.closer > 0) }
        </div>
    }
}
