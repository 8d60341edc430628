//! Layouts as a picture: peak memory by step time, with the Pareto front. The pointer reads a point, a click shows
//! its plan, and another click compares it with the plan that the search began with.

use shardscope::session::beside::{Found, Layout};
use shardscope::units::{Seconds, decimal, gib, seconds};
use yew::prelude::*;

use super::layouts::{capacity, change};
use super::why_not::Why;
use crate::app::action::Action;
use crate::app::context::{send, use_dispatch};
use crate::app::ui::Search;

/// Width and height of the picture. Unit of all lengths: SVG unit.
const SIZE: (f64, f64) = (480.0, 220.0);
/// Left of and below the plot, for the axes' figures.
const EDGE: (f64, f64) = (44.0, 30.0);
/// Above and right of it.
const MARGIN: f64 = 20.0;
/// Radius of a point, and of its hit area.
const POINT: (&str, &str) = ("4.5", "9");
/// Side of the square of a published layout.
const SQUARE: f64 = 9.0;
/// Approximate number of ticks per axis.
const TICKS: f64 = 4.0;

#[derive(Properties, PartialEq)]
pub(crate) struct Props {
    pub search: Search,
    pub found: std::rc::Rc<Found>,
}

/// A scale from values to positions.
struct Axis {
    /// Whether equal ratios are equally far apart.
    logarithmic: bool,
    from: f64,
    to: f64,
    start: f64,
    end: f64,
}

impl Axis {
    fn place(&self, value: f64) -> f64 {
        // A logarithm of 0 would be minus infinity and draw nothing.
        let of = |value: f64| if self.logarithmic { value.max(f64::MIN_POSITIVE).ln() } else { value };
        let share = (of(value) - of(self.from)) / (of(self.to) - of(self.from)).max(f64::MIN_POSITIVE);
        self.start + share * (self.end - self.start)
    }

    /// Round values on it.
    fn ticks(&self) -> Vec<f64> {
        // Below a factor of three, powers of ten would give one tick or none.
        if self.logarithmic && self.to > self.from * 3.0 {
            let powers = (-3..6).flat_map(|power| [1.0, 2.0, 5.0].map(|of| of * 10_f64.powi(power)));
            return powers.filter(|tick| (self.from..=self.to).contains(tick)).collect();
        }
        // Equal ends (all layouts alike) would give a step of 0 and loop over the same tick.
        let rough = ((self.to - self.from) / TICKS).max(f64::MIN_POSITIVE);
        let power = 10_f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|of| of * power).into_iter().find(|step| *step >= rough);
        let step = step.unwrap_or(rough);
        let first = (self.from / step).ceil();
        // At most twelve: rounding must not make this loop forever.
        let ticks = (0..12).map(|index| (first + f64::from(index)) * step);
        ticks.take_while(|tick| *tick <= self.to).collect()
    }
}

/// A layout with its place in the picture.
#[derive(Clone, Copy, PartialEq)]
struct Dot<'a> {
    layout: &'a Layout,
    on_front: bool,
    /// By whom it was published.
    published: Option<&'a str>,
}

/// Layouts above this multiple of the capacity would squeeze all others to the left.
const BEYOND: f64 = 1.3;

/// All layouts that are known, each once: those found, the plan searched, what was published for its model, and on
/// top the front.
fn dots(found: &Found, whole: f64) -> Vec<Dot<'_>> {
    let dot = |layout, on_front, published| Dot { layout, on_front, published };
    // A layout of the front may be in the list as well, and is drawn once, on top.
    let mut dots: Vec<Dot<'_>> = found
        .best
        .iter()
        .filter(|one| !found.frontier.contains(one))
        .map(|one| dot(one, false, None))
        .collect();
    dots.extend(found.frontier.iter().map(|one| dot(one, true, None)));
    let known =
        |layout: &Layout| found.best.iter().chain(&found.frontier).any(|one| one.changes == layout.changes);
    let own =
        found.around.own.iter().filter(|own| !known(&own.layout)).map(|own| dot(&own.layout, false, None));
    let published =
        found.around.published.iter().map(|one| dot(&one.layout, false, Some(one.about.as_str())));
    dots.extend(own.chain(published).filter(|dot| dot.layout.peak().in_gib() <= whole * BEYOND));
    dots
}

#[component(Front)]
pub(crate) fn front(Props { search, found }: &Props) -> Html {
    let read = use_state_eq(|| None::<Layout>);
    let whole = capacity(search).in_gib();
    let dots = dots(found, whole);
    // A single point is not a plot.
    if dots.len() < 2 {
        return html!();
    }
    let steps = || dots.iter().map(|dot| dot.layout.step().get());
    let (quick, slow) = (steps().fold(f64::MAX, f64::min), steps().fold(0.0, f64::max));
    let least = dots.iter().map(|dot| dot.layout.peak().in_gib()).fold(f64::MAX, f64::min);
    // Some room above and below, less where all steps are nearly equal.
    let room = 1.0 + ((slow / quick).max(1.02) - 1.0).min(1.0) * 0.08;
    let x = Axis {
        logarithmic: false,
        from: (least * 0.9).floor(),
        // Tight layouts are right of the capacity; the plot must include them.
        to: dots.iter().map(|dot| dot.layout.peak().in_gib() * 1.01).fold(whole, f64::max),
        start: EDGE.0,
        end: SIZE.0 - MARGIN,
    };
    let (unit, unit_name) = if quick < 600.0 { (1.0, "s") } else { (60.0, "min") };
    let y =
        // Logarithmic: layouts differ by factors, and half the time should look alike anywhere. Downwards in SVG, so
        // slow is above.
        Axis { logarithmic: true, from: quick / room / unit, to: slow * room / unit, start: SIZE.1 - EDGE.1, end: MARGIN };
    let limit = decimal(x.place(whole), 1);
    let at = |one: &Layout| (x.place(one.peak().in_gib()), y.place(one.step().get() / unit));
    let line = found.frontier.iter().enumerate().fold(String::new(), |mut line, (place, one)| {
        let (x, y) = at(one);
        line += &format!("{}{x:.1} {y:.1}", if place == 0 { "M" } else { "L" });
        line
    });
    let label = format!(
        "Peak memory by step time of {} layouts, from {:.0} GiB and {} to {:.0} GiB and {}; the table has the same",
        dots.len(),
        least,
        seconds(Seconds::new(slow)),
        whole,
        seconds(Seconds::new(quick))
    );
    // Whole numbers would repeat on the axis of a short range.
    let digits = usize::from((slow - quick) / unit < 8.0);
    // What the pointer reads, else the layout that is shown.
    let described = (*read).clone().or_else(|| {
        dots.iter().find(|dot| dot.layout.changes == search.chosen).map(|dot| dot.layout.clone())
    });
    let by =
        described.as_ref().and_then(|described| dots.iter().find(|dot| dot.layout == described)?.published);
    html! {
        <figure class="front">
            <svg viewBox={format!("0 0 {} {}", SIZE.0, SIZE.1)} role="img" aria-label={label}>
                { for x.ticks().into_iter().map(|tick| upright(&x, tick)) }
                { for y.ticks().into_iter().map(|tick| level(&y, tick, digits)) }
                <text class="end" x={(SIZE.0 - MARGIN).to_string()} y={(SIZE.1 - 2.0).to_string()}>{ "peak, GiB" }</text>
                <text x="0" y="10">{ format!("step, {unit_name}") }</text>
                <line class="limit" x1={limit.clone()} x2={limit} y1={y.end.to_string()} y2={y.start.to_string()} />
                <path class="pareto" d={line} />
                { for dots.iter().map(|dot| html! {
                    <Point
                        search={search.clone()}
                        layout={dot.layout.clone()}
                        place={at(dot.layout)}
                        on_front={dot.on_front}
                        published={dot.published.map(ToOwned::to_owned)}
                        read={read.setter()}
                    />
                }) }
            </svg>
            <figcaption class="small">
                <span role="status">
                    { described.as_ref().map_or_else(
                        || html! { <span class="soft">{ "Each point is a layout that fits; hollow points are tight: less than the headroom stays free, or only once PyTorch releases cached blocks. The line is the Pareto front, squares are published layouts of this model on these GPUs. Hover for details, click to preview." }</span> },
                        |one| html! { <>
                            <strong>{ format!("{}, peak {}", seconds(one.step()), gib(one.peak())) }</strong>
                            { format!(": {}", one.words()) }
                            { by.map(|by| format!(", {by}")).unwrap_or_default() }
                            if one.tight { <span class="tight-mark">{ " (tight)" }</span> }
                            <Why base={search.base.clone()} changes={one.changes.clone()} best={found.best.first().cloned()} />
                        </> },
                    ) }
                </span>
                if !search.chosen.is_empty() {
                    <Chosen before={search.before.is_some()} />
                }
            </figcaption>
        </figure>
    }
}

fn upright(axis: &Axis, tick: f64) -> Html {
    let x = decimal(axis.place(tick), 1);
    html! {
        <>
            <line class="grid" x1={x.clone()} x2={x.clone()} y1={MARGIN.to_string()} y2={(SIZE.1 - EDGE.1).to_string()} />
            <text class="middle" {x} y={(SIZE.1 - EDGE.1 + 13.0).to_string()}>{ decimal(tick, 0) }</text>
        </>
    }
}

fn level(axis: &Axis, tick: f64, digits: usize) -> Html {
    let y = axis.place(tick);
    html! {
        <>
            <line class="grid" x1={EDGE.0.to_string()} x2={(SIZE.0 - MARGIN).to_string()} y1={decimal(y, 1)} y2={decimal(y, 1)} />
            <text class="end" x={(EDGE.0 - 6.0).to_string()} y={decimal(y + 3.5, 1)}>{ decimal(tick, digits) }</text>
        </>
    }
}

#[derive(Properties, PartialEq)]
struct PointProps {
    search: Search,
    layout: Layout,
    place: (f64, f64),
    on_front: bool,
    published: Option<String>,
    read: UseStateSetter<Option<Layout>>,
}

#[component(Point)]
fn point(props: &PointProps) -> Html {
    let dispatch = use_dispatch();
    // No changes: the plan that the search began with.
    let PointProps { search, layout, place, on_front, published, read } = props;
    let (x, y) = (decimal(place.0, 1), decimal(place.1, 1));
    let base = layout.changes.is_empty().then_some("base");
    let class = classes!(
        "point",
        on_front.then_some("on-front"),
        published.as_ref().map(|_| "published"),
        base,
        layout.tight.then_some("tight"),
        (layout.changes == search.chosen).then_some("now"),
    );
    let over = {
        let (read, layout) = (read.clone(), layout.clone());
        move |_| read.set(Some(layout.clone()))
    };
    let out = {
        let read = read.clone();
        move |_| read.set(None)
    };
    let changes = layout.changes.clone();
    html! {
        <g {class} onmouseenter={over} onmouseleave={out} onclick={send(&dispatch, move || Action::Look(changes.clone()))}>
            <title>{ published.clone().unwrap_or_else(|| change(layout)) }</title>
            // A larger invisible circle: fingers miss one of nine pixels.
            <circle class="near" cx={x.clone()} cy={y.clone()} r={POINT.1} />
            if published.is_some() {
                <rect class="dot" x={decimal(place.0 - SQUARE / 2.0, 1)} y={decimal(place.1 - SQUARE / 2.0, 1)} width={SQUARE.to_string()} height={SQUARE.to_string()} />
            } else {
                <circle class="dot" cx={x} cy={y} r={POINT.0} />
            }
        </g>
    }
}

/// Actions for the layout that is shown.
#[component(Chosen)]
fn chosen(ChosenProps { before }: &ChosenProps) -> Html {
    let dispatch = use_dispatch();
    html! {
        <span class="chosen-layout">
            <button type="button" class="button" onclick={send(&dispatch, || Action::CompareFound(false))}>
                { "Compare with the starting plan" }
            </button>
            if *before {
                <button type="button" class="button" onclick={send(&dispatch, || Action::CompareFound(true))}>
                    { "Compare with the previous layout" }
                </button>
            }
            <button type="button" class="button quiet" onclick={send(&dispatch, || Action::Look(Vec::new()))}>
                { "Back to the starting plan" }
            </button>
        </span>
    }
}

#[derive(Properties, PartialEq)]
struct ChosenProps {
    /// Whether another layout was looked at before.
    before: bool,
}
