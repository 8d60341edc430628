//! Layouts as a picture: peak memory by step time, with the front of those that none beats in both. The pointer reads a
//! point, a click shows its plan, and one more compares it with the plan that the search began with.

use shardscope::session::beside::{Found, Layout};
use shardscope::units::{decimal, gib, seconds};
use yew::prelude::*;

use super::layouts::{capacity, change};
use crate::app::action::Action;
use crate::app::context::{send, use_dispatch};
use crate::app::ui::Search;

/// Width and height of the picture. Unit of all lengths: SVG unit.
const SIZE: (f64, f64) = (480.0, 220.0);
/// Left of and below the plot, for the axes' figures.
const EDGE: (f64, f64) = (44.0, 30.0);
/// Above and right of it.
const MARGIN: f64 = 20.0;
/// Radius of a point, and of what the pointer meets.
const POINT: (&str, &str) = ("4.5", "9");
/// About as many marks of an axis.
const TICKS: f64 = 4.0;

#[derive(Properties, PartialEq)]
pub(crate) struct Props {
    pub search: Search,
    pub found: std::rc::Rc<Found>,
}

/// A scale from values to places.
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
        // Below a factor of three, powers of ten would give one mark or none.
        if self.logarithmic && self.to > self.from * 3.0 {
            let powers = (-3..6).flat_map(|power| [1.0, 2.0, 5.0].map(|of| of * 10_f64.powi(power)));
            return powers.filter(|tick| (self.from..=self.to).contains(tick)).collect();
        }
        // Equal ends (all layouts alike) would give a step of 0 and loop over the same mark.
        let rough = ((self.to - self.from) / TICKS).max(f64::MIN_POSITIVE);
        let power = 10_f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|of| of * power).into_iter().find(|step| *step >= rough);
        let step = step.unwrap_or(rough);
        let first = (self.from / step).ceil();
        // At most twelve: rounding must not loop for ever.
        let ticks = (0..12).map(|index| (first + f64::from(index)) * step);
        ticks.take_while(|tick| *tick <= self.to).collect()
    }
}

/// All layouts that are known, those of the front among them, each once.
fn points(found: &Found) -> Vec<(&Layout, bool)> {
    let front = found.frontier.iter().map(|one| (one, true));
    // A layout of the front may be on the list as well, and is drawn once, above the others.
    let others = found.best.iter().filter(|one| !found.frontier.contains(one)).map(|one| (one, false));
    others.chain(front).collect()
}

#[component(Front)]
pub(crate) fn front(Props { search, found }: &Props) -> Html {
    let read = use_state_eq(|| None::<Layout>);
    let points = points(found);
    // One point is no picture.
    if points.len() < 2 {
        return html!();
    }
    let whole = capacity(search).in_gib();
    let steps = || points.iter().map(|(one, _)| one.step().get());
    let (quick, slow) = (steps().fold(f64::MAX, f64::min), steps().fold(0.0, f64::max));
    let least = points.iter().map(|(one, _)| one.peak().in_gib()).fold(f64::MAX, f64::min);
    // Some room above and below, less where all steps are nearly equal.
    let room = 1.0 + ((slow / quick).max(1.02) - 1.0).min(1.0) * 0.08;
    let x = Axis {
        logarithmic: false,
        from: (least * 0.9).floor(),
        // Tight layouts lie right of the capacity; the plot must have them.
        to: points.iter().map(|(one, _)| one.peak().in_gib() * 1.01).fold(whole, f64::max),
        start: EDGE.0,
        end: SIZE.0 - MARGIN,
    };
    let y =
        // Logarithmic: layouts differ by factors, and half the time should look alike anywhere. Downwards in SVG, so
        // slow is above.
        Axis { logarithmic: true, from: quick / room, to: slow * room, start: SIZE.1 - EDGE.1, end: MARGIN };
    let limit = decimal(x.place(whole), 1);
    let at = |one: &Layout| (x.place(one.peak().in_gib()), y.place(one.step().get()));
    let line = found.frontier.iter().enumerate().fold(String::new(), |mut line, (place, one)| {
        let (x, y) = at(one);
        line += &format!("{}{x:.1} {y:.1}", if place == 0 { "M" } else { "L" });
        line
    });
    let label = format!(
        "Peak memory by step time of {} layouts, from {:.0} GiB and {:.1} s to {:.0} GiB and {:.1} s; the table has the same",
        points.len(),
        least,
        slow,
        whole,
        quick
    );
    // Whole seconds would repeat on the axis of a short range.
    let digits = usize::from(slow - quick < 8.0);
    // What the pointer reads, else the layout that is shown.
    let told = (*read).clone().or_else(|| {
        points.iter().find(|(one, _)| one.changes == search.chosen).map(|(one, _)| (*one).clone())
    });
    html! {
        <figure class="front">
            <svg viewBox={format!("0 0 {} {}", SIZE.0, SIZE.1)} role="img" aria-label={label}>
                { for x.ticks().into_iter().map(|tick| upright(&x, tick)) }
                { for y.ticks().into_iter().map(|tick| level(&y, tick, digits)) }
                <text class="end" x={(SIZE.0 - MARGIN).to_string()} y={(SIZE.1 - 2.0).to_string()}>{ "peak, GiB" }</text>
                <text x="0" y="10">{ "step, s" }</text>
                <line class="limit" x1={limit.clone()} x2={limit} y1={y.end.to_string()} y2={y.start.to_string()} />
                <path class="pareto" d={line} />
                { for points.iter().map(|(one, on_front)| html! {
                    <Point search={search.clone()} layout={(*one).clone()} place={at(one)} on_front={*on_front} read={read.setter()} />
                }) }
            </svg>
            <figcaption class="small">
                <span role="status">
                    { told.as_ref().map_or_else(
                        || html! { <span class="soft">{ "Each point is a layout that fits, hollow where it is tight: at the edge of the device, or beyond it until PyTorch releases cached blocks. The line is the Pareto front. Hover a point to read it, click to apply it." }</span> },
                        |one| html! { <>
                            <strong>{ format!("{}, peak {}", seconds(one.step()), gib(one.peak())) }</strong>
                            { format!(": {}", one.words()) }
                            if one.tight { <span class="tight-mark">{ " (tight)" }</span> }
                        </> },
                    ) }
                </span>
                if !search.chosen.is_empty() {
                    <Chosen />
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
    read: UseStateSetter<Option<Layout>>,
}

#[component(Point)]
fn point(props: &PointProps) -> Html {
    let dispatch = use_dispatch();
    // No changes: the plan that the search began with.
    let PointProps { search, layout, place, on_front, read } = props;
    let (x, y) = (decimal(place.0, 1), decimal(place.1, 1));
    let base = layout.changes.is_empty().then_some("base");
    let class = classes!(
        "point",
        on_front.then_some("on-front"),
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
            <title>{ change(layout) }</title>
            // A larger circle that is not seen: fingers miss one of nine pixels.
            <circle class="near" cx={x.clone()} cy={y.clone()} r={POINT.1} />
            <circle cx={x} cy={y} r={POINT.0} />
        </g>
    }
}

/// What there is to do with the layout that is shown.
#[component(Chosen)]
fn chosen() -> Html {
    let dispatch = use_dispatch();
    html! {
        <span class="chosen-layout">
            <button type="button" class="button" onclick={send(&dispatch, || Action::CompareFound)}>
                { "Compare with the plan searched" }
            </button>
            <button type="button" class="button quiet" onclick={send(&dispatch, || Action::Look(Vec::new()))}>
                { "Back to the plan searched" }
            </button>
        </span>
    }
}
