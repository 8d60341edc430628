//! The lanes of the stages, each with what it does when; the pointer shows what runs.

use shardscope::session::PtrEq;
use shardscope::session::schedule::{LANE, Picture, StepTimeline, Viewport, WIDTH};
use shardscope::units::{decimal, seconds};
use web_sys::Element;
use yew::prelude::*;

use super::axis::{axis, moment};
use super::mini::names;
use super::pan::{Pan, ZOOM};
use crate::app::browser;

/// Maximum height of the lanes; more stages get narrower ones, without numbers. Unit: CSS pixel.
const HIGHEST: u32 = 480;

#[derive(Properties, PartialEq)]
pub(super) struct Props {
    pub timeline: PtrEq<StepTimeline>,
    pub picture: Picture,
    pub window: Viewport,
    pub pan: Callback<Pan>,
    /// Where the pointer is, as a share of the window.
    pub cursor: Option<f64>,
    pub move_cursor: Callback<Option<f64>>,
}

#[component(Lanes)]
pub(super) fn lanes(props: &Props) -> Html {
    let Props { timeline, picture, window, .. } = props;
    let node = use_node_ref();
    let running = use_state_eq(|| None::<String>);
    let height = timeline.lanes() * LANE;
    let shown = height.min(HIGHEST);
    // Narrower lanes have no room for text.
    let numbers = if shown == height { picture.numbers.as_slice() } else { &[] };
    let (first, last) = timeline.phases();
    let phase = |moment: f64| {
        let x = decimal(window.place(moment) * f64::from(WIDTH), 2);
        html! { <line class="phase" x1={x.clone()} x2={x} y2={height.to_string()} /> }
    };
    let place = {
        let node = node.clone();
        move |x: i32, y: i32| {
            let area = node.cast::<Element>()?.get_bounding_client_rect();
            let share = (f64::from(x) - area.left()) / area.width().max(1.0);
            let lane = (f64::from(y) - area.top()) / area.height().max(1.0);
            // Just below 1: the lower edge belongs to the last lane.
            Some((share.clamp(0.0, 1.0), lane.clamp(0.0, 0.999)))
        }
    };
    let onpointermove = {
        let (pan, cursor, running) = (props.pan.clone(), props.move_cursor.clone(), running.setter());
        let (timeline, window, place, node) = (timeline.clone(), *window, place.clone(), node.clone());
        move |event: PointerEvent| {
            let Some((share, lane)) = place(event.client_x(), event.client_y()) else { return };
            if event.buttons() == 1 {
                // Movement in pixels, the window in shares of the lanes' width.
                let width =
                    node.cast::<Element>().map_or(1.0, |node| node.get_bounding_client_rect().width());
                return pan.emit(Pan::Shift(-f64::from(event.movement_x()) / width.max(1.0)));
            }
            cursor.emit(Some(share));
            running.set(what_runs(&timeline, window, share, lane));
        }
    };
    let onpointerleave = {
        let (cursor, running) = (props.move_cursor.clone(), running.setter());
        move |_| {
            cursor.emit(None);
            running.set(None);
        }
    };
    let onkeydown = {
        let pan = props.pan.clone();
        move |event: KeyboardEvent| {
            let Some(to) = Pan::of_key(&event.key()) else { return };
            event.prevent_default();
            pan.emit(to);
        }
    };
    let onwheel = {
        let (pan, place) = (props.pan.clone(), place.clone());
        move |event: WheelEvent| {
            if !browser::has_command(&event) {
                // Without Ctrl or Cmd, the wheel scrolls the page.
                return;
            }
            let Some((at, _)) = place(event.client_x(), event.client_y()) else { return };
            event.prevent_default();
            // The square root, since a wheel turns in many small steps.
            let factor = if event.delta_y() > 0.0 { ZOOM.sqrt() } else { 1.0 / ZOOM.sqrt() };
            pan.emit(Pan::Zoom(factor, at));
        }
    };
    let label = format!(
        "Each of {} stages from top to bottom, its forward and backward passes from left to right; arrows move, plus and minus zoom",
        timeline.lanes()
    );
    html! {
        <div class="schedule-frame">
            { names(timeline, shown == height) }
            <div
                ref={node}
                class="lanes"
                role="img"
                tabindex="0"
                aria-label={label}
                {onkeydown}
                {onpointermove}
                {onpointerleave}
                {onwheel}
            >
                <svg
                    class="lane-boxes"
                    viewBox={format!("0 0 {WIDTH} {height}")}
                    height={shown.to_string()}
                    preserveAspectRatio="none"
                >
                    { for picture.paths.iter().map(|(work, path)| html! { <path class={work.class()} d={path.clone()} /> }) }
                    { phase(first) }
                    { phase(last) }
                    { props.cursor.map(|at| line_at(at, height)).unwrap_or_default() }
                </svg>
                // Text is in a separate picture: that of the lanes is stretched, which would stretch letters too.
                <svg class="lane-numbers" height={shown.to_string()}>
                    { for numbers.iter().map(|number| html! {
                        <text x={decimal(number.at * 100.0, 2) + "%"} y={(number.lane * LANE + 14).to_string()}>
                            { number.micro_batch }
                        </text>
                    }) }
                </svg>
            </div>
            { axis(timeline, *window) }
            <p class="lane-told small soft" role="status">{ (*running).clone() }</p>
        </div>
    }
}

pub(super) fn line_at(share: f64, height: u32) -> Html {
    let x = decimal(share * f64::from(WIDTH), 2);
    html! { <line class="cursor-line" x1={x.clone()} x2={x} y2={height.to_string()} /> }
}

/// What the lane under the pointer does at its moment, in words.
fn what_runs(timeline: &StepTimeline, window: Viewport, share: f64, lane: f64) -> Option<String> {
    let stages = timeline.lanes();
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    // `lane` is below 1, so this is below the number of stages.
    let stage = (lane * f64::from(stages)) as u32;
    let at = window.from + share * window.length;
    let when = moment(timeline, at);
    Some(match timeline.running(stage, at) {
        Some(event) => format!(
            "stage {stage} at {when}: {} of micro-batch {}{}, {}",
            event.work.name(),
            event.micro_batch,
            if event.chunks > 1 { format!(", chunk {}", event.chunk) } else { String::new() },
            seconds(event.takes)
        ),
        // After the last pass every stage is in it.
        None if at > timeline.empty_from() => format!("{when}: end of step: gradient sync, optimizer"),
        None => format!("stage {stage} at {when}: idle"),
    })
}
