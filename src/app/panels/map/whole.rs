//! The whole cluster in little beside a map that is higher than its frame, with what is in the frame marked; a press goes
//! there.

use gloo::events::EventListener;
use shardscope::session::map::{Colour, Geometry, overview};
use shardscope::session::{PtrEq, Shown};
use shardscope::units::decimal;
use web_sys::{Element, EventTarget};
use yew::prelude::*;

use super::cells::amounts;

/// Points across and, at most, down.
const POINTS: (u64, u64) = (16, 120);
/// Height of a map from which on there is more than the frame shows. Unit: CSS pixel.
const HIGH: u32 = 600;

#[derive(Properties, PartialEq)]
pub(super) struct Props {
    pub shown: PtrEq<Shown>,
    pub colour: Colour,
    pub geometry: Geometry,
    pub frame: NodeRef,
}

#[component(Whole)]
pub(super) fn whole(Props { shown, colour, geometry, frame }: &Props) -> Html {
    let lens = use_node_ref();
    let points = (POINTS.0, geometry.rows_and_columns().0.clamp(1, POINTS.1));
    let paths = use_memo((shown.clone(), *colour, *geometry), |(shown, colour, geometry)| {
        overview(&shown.plan, *colour, &amounts(shown), geometry, points)
    });
    {
        let lens = lens.clone();
        use_effect_with((frame.clone(), *geometry), move |(frame, _)| {
            let listener = frame.cast::<Element>().zip(lens.cast::<Element>()).map(|(frame, lens)| {
                mark(&frame, &lens, points);
                let target: EventTarget = frame.clone().into();
                EventListener::new(&target, "scroll", move |_| mark(&frame, &lens, points))
            });
            move || drop(listener)
        });
    }
    let go = {
        let frame = frame.clone();
        Callback::from(move |event: PointerEvent| {
            let svg = event.target_dyn_into::<Element>().and_then(|at| at.closest("svg").ok().flatten());
            if let (Some(svg), Some(frame), 1) = (svg, frame.cast::<Element>(), event.buttons()) {
                let area = svg.get_bounding_client_rect();
                let part = |at: i32, from: f64, length: f64| (f64::from(at) - from) / length.max(1.0);
                let y = part(event.client_y(), area.top(), area.height()) * f64::from(frame.scroll_height());
                let x = part(event.client_x(), area.left(), area.width()) * f64::from(frame.scroll_width());
                frame.scroll_to_with_x_and_y(
                    x - f64::from(frame.client_width()) / 2.0,
                    y - f64::from(frame.client_height()) / 2.0,
                );
            }
        })
    };
    if geometry.size().1 < HIGH {
        return html!();
    }
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
            { for paths.iter().map(|(class, path)| html! {
                <path class={format!("cell {hue}{class}")} d={path.clone()} />
            }) }
            <rect ref={lens} class="lens" />
        </svg>
    }
}

/// Puts the mark around what is in the frame.
fn mark(frame: &Element, lens: &Element, points: (u64, u64)) {
    let part = |at: i32, of: i32, points: u64| {
        decimal(f64::from(at) / f64::from(of.max(1)) * f64::from(u32::try_from(points).unwrap_or(1)), 3)
    };
    let (high, wide) = (frame.scroll_height(), frame.scroll_width());
    let places = [
        ("x", part(frame.scroll_left(), wide, points.0)),
        ("y", part(frame.scroll_top(), high, points.1)),
        ("width", part(frame.client_width(), wide, points.0)),
        ("height", part(frame.client_height(), high, points.1)),
    ];
    for (name, value) in places {
        let _ = lens.set_attribute(name, &value);
    }
}
