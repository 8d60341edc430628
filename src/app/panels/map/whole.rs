//! A miniature of the cluster next to a map that is taller than its frame, with the visible part marked; a press
//! scrolls there.

use shardscope::session::map::{Colour, Geometry, overview};
use shardscope::session::{PtrEq, Shown};
use shardscope::units::decimal;
use web_sys::Element;
use yew::prelude::*;

use super::cells::amounts;

/// Points across and, at most, down.
const POINTS: (u64, u64) = (16, 120);
/// Map height above which the frame does not show everything. Unit: CSS pixel.
const HIGH: u32 = 600;

#[derive(Properties, PartialEq)]
pub(super) struct Props {
    pub shown: PtrEq<Shown>,
    pub colour: Colour,
    pub geometry: Geometry,
    pub frame: NodeRef,
}

/// Equal properties cause no redraw; [`mark`] marks the visible part.
#[component(Whole)]
pub(super) fn whole(Props { shown, colour, geometry, frame }: &Props) -> Html {
    // A map that fits its frame needs no second picture.
    if geometry.size().1 < HIGH {
        return html!();
    }
    // No more points down than there are rows of cells.
    let points = (POINTS.0, geometry.rows_and_columns().0.clamp(1, POINTS.1));
    let paths = overview(&shown.plan, *colour, &amounts(shown), geometry, points);
    let frame = frame.clone();
    let go = Callback::from(move |event: PointerEvent| {
        let svg = event.target_dyn_into::<Element>().and_then(|at| at.closest("svg").ok().flatten());
        // Also while dragging: button 1 is down.
        if let (Some(svg), Some(frame), 1) = (svg, frame.cast::<Element>(), event.buttons()) {
            let area = svg.get_bounding_client_rect();
            let to = |at: i32, from: f64, length: f64, whole: i32, seen: i32| {
                (f64::from(at) - from) / length.max(1.0) * f64::from(whole) - f64::from(seen) / 2.0
            };
            frame.scroll_to_with_x_and_y(
                to(event.client_x(), area.left(), area.width(), frame.scroll_width(), frame.client_width()),
                to(event.client_y(), area.top(), area.height(), frame.scroll_height(), frame.client_height()),
            );
        }
    });
    let hue = if matches!(colour, Colour::Memory | Colour::Traffic) { "r" } else { "c" };
    html! {
        <svg
            class="whole"
            viewBox={format!("0 0 {} {}", points.0, points.1)}
            preserveAspectRatio="none"
            aria-hidden="true"
            onpointerdown={go.clone()}
            onpointermove={go}
        >
            { for paths.into_iter().map(|(class, path)| html! { <path class={format!("cell {hue}{class}")} d={path} /> }) }
            <rect class="lens" />
        </svg>
    }
}

/// Marks what `frame` shows.
pub(super) fn mark(frame: &Element) {
    // By position rather than id: the lens is the last child of the picture after the frame, if there is one.
    let lens = frame.next_element_sibling().and_then(|whole| whole.last_element_child());
    let Some(lens) = lens else { return };
    let part = |name: &str, at: i32, of: i32| {
        let part = decimal(f64::from(at) * 100.0 / f64::from(of.max(1)), 2) + "%";
        let _ = lens.set_attribute(name, &part);
    };
    let (high, wide) = (frame.scroll_height(), frame.scroll_width());
    part("x", frame.scroll_left(), wide);
    part("y", frame.scroll_top(), high);
    part("width", frame.client_width(), wide);
    part("height", frame.client_height(), high);
}
