//! What each stage does when, through a window that can be moved, and how a stage's memory rises and falls with it.

use shardscope::quantity::{decimal, gib, grouped, percent, seconds, size};
use shardscope::session::schedule::{
    Alternative, CURVE, LANE, Picture, StepTimeline, Viewport, WIDTH, Work, alternatives,
};
use shardscope::session::{PtrEq, Shown};
use web_sys::Element;
use yew::prelude::*;

use super::advice::Apply;
use super::memory::{StageList, stage_chosen};
use super::panel::{Panel, PlanProps, Story};
use crate::app::browser;
use crate::app::context::AppContext;
use crate::app::panel_id::PanelId;
use crate::app::widgets::{Swatch, Term, Wide, heads, pair};

pub(super) const PANEL: Panel = Panel {
    id: PanelId::Schedule,
    tab: Some("Schedule"),
    view: |shown| html! { <Schedule {shown} /> },
    story: Some(Story {
        title: "Who waits for whom",
        text: |shown| {
            let time = &shown.report.time;
            format!(
                "Each lane is a pipeline stage, its forward and backward passes from left to right by the schedule {}. The pipeline bubble is {} of the time.",
                time.schedule.name,
                percent(time.bubble_fraction)
            )
        },
    }),
};

/// Most height of the lanes; more stages get narrower ones, without numbers. Unit: CSS pixel.
const HIGHEST: u32 = 480;
/// How much longer or shorter the window gets at once.
const ZOOM: f64 = 2.0;
/// By what part of its length the window moves at once.
const STEP: f64 = 0.25;
/// Marks of the time axis.
const TICKS: u32 = 4;

/// How the window on the schedule moves.
#[derive(Clone, Copy)]
enum Pan {
    /// So many times longer, around a place of it from 0 to 1.
    Zoom(f64, f64),
    /// By so many of its lengths.
    Shift(f64),
    /// To the whole step.
    Whole,
}

#[component(Schedule)]
fn schedule(PlanProps { shown }: &PlanProps) -> Html {
    let timeline = use_memo(shown.clone(), |shown| StepTimeline::of(shown));
    let window = use_state_eq(|| Viewport::WHOLE);
    let cursor = use_state_eq(|| None::<f64>);
    let pan = {
        let (set, now) = (window.setter(), *window);
        Callback::from(move |pan: Pan| {
            set.set(match pan {
                Pan::Zoom(factor, at) => now.zoomed(factor, at),
                Pan::Shift(share) => now.moved(share),
                Pan::Whole => Viewport::WHOLE,
            });
        })
    };
    let time = &shown.report.time;
    let (drawn, all) = timeline.micro_batches;
    let picture = timeline.picture(*window);
    let move_cursor = {
        let cursor = cursor.setter();
        Callback::from(move |at| cursor.set(at))
    };
    html! {
        <section id="schedule" class="panel" aria-labelledby="schedule-title">
            <header>
                <h2 id="schedule-title">{ "Pipeline schedule" }</h2>
                <p>
                    { format!("Schedule {}, {} ", time.schedule.name, grouped(all.into())) }
                    <Term name="micro-batch">{ "micro-batches" }</Term>
                    if drawn < all {
                        { format!(" (the first {} are drawn: the middle repeats)", grouped(drawn.into())) }
                    }
                    { "; pipeline " }<Term name="bubble" />
                    { format!(" {} on the slowest stage.", percent(time.bubble_fraction)) }
                </p>
            </header>
            { legend(&timeline) }
            { controls(&timeline, *window, &pan) }
            <Lanes
                timeline={PtrEq::new((*timeline).clone())}
                {picture}
                window={*window}
                {pan}
                cursor={*cursor}
                {move_cursor}
            />
            <MemoryCurve shown={shown.clone()} timeline={PtrEq::new((*timeline).clone())} window={*window} cursor={*cursor} />
            <Others shown={shown.clone()} />
        </section>
    }
}

/// Every kind of work, whether or not the window shows it.
fn legend(timeline: &StepTimeline) -> Html {
    let (first, last) = timeline.phases();
    html! {
        <ul class="legend">
            { for timeline.works().into_iter().map(|work| html! {
                <li><Swatch class={work.class()} />{ work.name() }</li>
            }) }
            <li>
                <Term name="warm-up" />
                { format!(" until {}, cool-down from {}", moment(timeline, first), moment(timeline, last)) }
            </li>
        </ul>
    }
}

/// A share of the whole step as a time.
fn moment(timeline: &StepTimeline, share: f64) -> String {
    if share <= 0.0 {
        return "0 s".to_owned();
    }
    seconds(timeline.total() * share)
}

fn controls(timeline: &StepTimeline, window: Viewport, pan: &Callback<Pan>) -> Html {
    let buttons = [
        ("earlier", "◀", Pan::Shift(-STEP)),
        ("later", "▶", Pan::Shift(STEP)),
        ("closer", "+", Pan::Zoom(1.0 / ZOOM, 0.5)),
        ("further", "−", Pan::Zoom(ZOOM, 0.5)),
    ];
    let whole = pan.clone();
    html! {
        <div class="pans">
            { for buttons.into_iter().map(|(label, sign, to)| {
                let pan = pan.clone();
                html! {
                    <button type="button" class="button small" aria-label={label} onclick={move |_| pan.emit(to)}>
                        { sign }
                    </button>
                }
            }) }
            <button type="button" class="button small" onclick={move |_| whole.emit(Pan::Whole)}>
                { "Whole step" }
            </button>
            <span class="soft small" role="status">
                { format!("{} to {}", moment(timeline, window.from), moment(timeline, window.from + window.length)) }
            </span>
        </div>
    }
}

#[derive(Properties, PartialEq)]
struct LanesProps {
    timeline: PtrEq<StepTimeline>,
    picture: Picture,
    window: Viewport,
    pan: Callback<Pan>,
    /// Where the pointer is, as a share of the window.
    cursor: Option<f64>,
    move_cursor: Callback<Option<f64>>,
}

#[component(Lanes)]
fn lanes(props: &LanesProps) -> Html {
    let LanesProps { timeline, picture, window, .. } = props;
    let node = use_node_ref();
    let told = use_state_eq(|| None::<String>);
    let height = timeline.lanes() * LANE;
    let shown = height.min(HIGHEST);
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
            Some((share.clamp(0.0, 1.0), lane.clamp(0.0, 0.999)))
        }
    };
    let onpointermove = {
        let (pan, cursor, told) = (props.pan.clone(), props.move_cursor.clone(), told.setter());
        let (timeline, window, place, node) = (timeline.clone(), *window, place.clone(), node.clone());
        move |event: PointerEvent| {
            let Some((share, lane)) = place(event.client_x(), event.client_y()) else { return };
            if event.buttons() == 1 {
                let width =
                    node.cast::<Element>().map_or(1.0, |node| node.get_bounding_client_rect().width());
                return pan.emit(Pan::Shift(-f64::from(event.movement_x()) / width.max(1.0)));
            }
            cursor.emit(Some(share));
            told.set(what_runs(&timeline, window, share, lane));
        }
    };
    let onpointerleave = {
        let (cursor, told) = (props.move_cursor.clone(), told.setter());
        move |_| {
            cursor.emit(None);
            told.set(None);
        }
    };
    let onkeydown = {
        let pan = props.pan.clone();
        move |event: KeyboardEvent| {
            // Keys that mean nothing here are the browser's.
            let Some(to) = key(&event.key()) else { return };
            event.prevent_default();
            pan.emit(to);
        }
    };
    let onwheel = {
        let (pan, place) = (props.pan.clone(), place.clone());
        move |event: WheelEvent| {
            if !browser::has_command(&event) {
                return;
            }
            let Some((at, _)) = place(event.client_x(), event.client_y()) else { return };
            event.prevent_default();
            let factor = if event.delta_y() > 0.0 { ZOOM.sqrt() } else { 1.0 / ZOOM.sqrt() };
            pan.emit(Pan::Zoom(factor, at));
        }
    };
    let label = format!(
        "Each of {} stages from top to bottom, its forward and backward passes from left to right; arrows move, plus and minus zoom",
        timeline.lanes()
    );
    let readable = shown == height;
    html! {
        <div class="schedule-frame">
            <ol class={classes!("lane-names", (!readable).then_some("many"))} aria-hidden="true">
                { for (0..timeline.lanes()).filter(|lane| readable || *lane == 0 || lane + 1 == timeline.lanes()).map(|lane| html! {
                    <li>{ format!("stage {lane}") }</li>
                }) }
            </ol>
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
                <svg class="lane-numbers" height={shown.to_string()}>
                    { for numbers.iter().map(|number| html! {
                        <text x={decimal(number.at * 100.0, 2) + "%"} y={(number.lane * LANE + 14).to_string()}>
                            { number.micro_batch }
                        </text>
                    }) }
                </svg>
            </div>
            { axis(timeline, *window) }
            <p class="lane-told small soft" role="status">{ (*told).clone() }</p>
        </div>
    }
}

fn line_at(share: f64, height: u32) -> Html {
    let x = decimal(share * f64::from(WIDTH), 2);
    html! { <line class="cursor-line" x1={x.clone()} x2={x} y2={height.to_string()} /> }
}

/// What the lane under the pointer does at its moment, in words.
fn what_runs(timeline: &StepTimeline, window: Viewport, share: f64, lane: f64) -> Option<String> {
    let stages = timeline.lanes();
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
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
        None => format!("stage {stage} at {when}: waits"),
    })
}

/// The time below the lanes.
fn axis(timeline: &StepTimeline, window: Viewport) -> Html {
    html! {
        <ol class="time-axis" aria-hidden="true">
            { for (0..=TICKS).map(|tick| {
                let share = f64::from(tick) / f64::from(TICKS);
                html! { <li>{ moment(timeline, window.from + window.length * share) }</li> }
            }) }
        </ol>
    }
}

fn key(key: &str) -> Option<Pan> {
    Some(match key {
        "ArrowLeft" => Pan::Shift(-STEP),
        "ArrowRight" => Pan::Shift(STEP),
        "+" | "=" => Pan::Zoom(1.0 / ZOOM, 0.5),
        "-" => Pan::Zoom(ZOOM, 0.5),
        "0" | "Home" => Pan::Whole,
        _ => return None,
    })
}

#[derive(Properties, PartialEq)]
struct CurveProps {
    shown: PtrEq<Shown>,
    timeline: PtrEq<StepTimeline>,
    window: Viewport,
    cursor: Option<f64>,
}

#[component(MemoryCurve)]
fn memory_curve(props: &CurveProps) -> Html {
    let CurveProps { shown, timeline, window, cursor } = props;
    let app = use_context::<AppContext>();
    let stage = stage_chosen(app.and_then(|app| app.ui.stage), shown);
    let curve = usize::try_from(stage).ok().and_then(|stage| timeline.curve(shown, stage, *window));
    let Some(curve) = curve else { return html!() };
    let height = f64::from(CURVE);
    let y = |share: f64| decimal(height * (1.0 - share), 2);
    html! {
        <figure class="curve">
            <figcaption>
                { "Memory of stage " }<StageList shown={shown.clone()} />
                { " over the step: static (weights, gradients, optimizer), above it activations of the micro-batches " }
                <Term name="in flight" />
                { format!("; dashed = peak including temporaries; top = {} capacity.", size(curve.most)) }
            </figcaption>
            <svg
                viewBox={format!("0 0 {WIDTH} {CURVE}")}
                height={CURVE.to_string()}
                preserveAspectRatio="none"
                aria-hidden="true"
            >
                <path class="curve-area" d={curve.area.clone()} />
                <rect
                    class="curve-held"
                    y={y(curve.held)}
                    width={WIDTH.to_string()}
                    height={decimal(height * curve.held, 2)}
                />
                <line class="curve-peak" x2={WIDTH.to_string()} y1={y(curve.peak)} y2={y(curve.peak)} />
                { cursor.map(|at| line_at(at, CURVE)).unwrap_or_default() }
            </svg>
        </figure>
    }
}

/// Every schedule's memory against its bubble, worked out when opened.
#[component(Others)]
fn others(PlanProps { shown }: &PlanProps) -> Html {
    let open = use_state_eq(|| false);
    let tried = use_memo((shown.clone(), *open), |(shown, open)| {
        open.then(|| alternatives(&shown.plan)).unwrap_or_default()
    });
    let ontoggle = {
        let open = open.setter();
        move |event: web_sys::Event| {
            let now = event.target_dyn_into::<Element>().is_some_and(|details| details.has_attribute("open"));
            open.set(now);
        }
    };
    html! {
        <details class="others" {ontoggle}>
            <summary>{ "Other schedules for this plan: memory against bubble" }</summary>
            if *open {
                <Wide label="Schedules for this plan">
                    <table class="figures">
                        <thead>{ heads(&["Schedule", ">in flight", ">peak, GiB", ">bubble", ">step", "apply"]) }</thead>
                        <tbody>{ for tried.iter().map(alternative) }</tbody>
                    </table>
                </Wide>
            }
        </details>
    }
}

fn alternative(one: &Alternative) -> Html {
    let name = match (one.changes.is_empty(), one.chunks) {
        (true, _) => format!("{} (this plan)", one.name),
        (_, 2..) => format!("{}, VPP {}", one.name, one.chunks),
        _ => one.name.to_owned(),
    };
    html! {
        <tr>
            <th scope="row">{ name }</th>
            <td class="number">{ grouped(one.in_flight) }</td>
            <td class="number">
                { pair(gib(one.peak).replace(" GiB", ""), if one.fits { "fits" } else { "out of memory" }) }
            </td>
            <td class="number">{ percent(one.bubble) }</td>
            <td class="number">{ seconds(one.step) }</td>
            <td><Apply change={one.changes.clone()} /></td>
        </tr>
    }
}

#[derive(Properties, PartialEq)]
pub(super) struct MiniProps {
    pub shown: PtrEq<Shown>,
}

/// Most height of the small picture. Unit: CSS pixel.
const MINI_HIGHEST: u32 = 96;

/// The whole step, small.
#[component(MiniSchedule)]
pub(super) fn mini_schedule(MiniProps { shown }: &MiniProps) -> Html {
    let timeline = use_memo(shown.clone(), |shown| StepTimeline::of(shown));
    let picture = timeline.picture(Viewport::WHOLE);
    let height = timeline.lanes() * LANE;
    let drawn = height.min(MINI_HIGHEST);
    html! {
        <div class="schedule-frame mini">
            <ol class={classes!("lane-names", (drawn < height).then_some("many"))} aria-hidden="true">
                { for (0..timeline.lanes()).filter(|lane| drawn == height || *lane == 0 || lane + 1 == timeline.lanes()).map(|lane| html! {
                    <li>{ format!("stage {lane}") }</li>
                }) }
            </ol>
            <div class="lanes" role="img" aria-label={format!("One step of {} pipeline stages", timeline.lanes())}>
                <svg
                    class="lane-boxes"
                    viewBox={format!("0 0 {WIDTH} {height}")}
                    height={drawn.to_string()}
                    preserveAspectRatio="none"
                >
                    { for picture.paths.iter().map(|(work, path)| html! { <path class={work.class()} d={path.clone()} /> }) }
                </svg>
            </div>
            { axis(&timeline, Viewport::WHOLE) }
        </div>
    }
}

/// The names of the kinds of work that a plan has, as a legend.
pub(super) fn work_legend(shown: &Shown) -> Html {
    let timeline = StepTimeline::of(shown);
    html! {
        <>
            { for timeline.works().into_iter().map(|work: Work| html! {
                <span><Swatch class={work.class()} />{ work.name() }</span>
            }) }
        </>
    }
}
