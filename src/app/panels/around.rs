//! Which changes affect the plan searched: each setting moved by one step, in time and in memory, and the layouts
//! that others ran.

use std::rc::Rc;

use shardscope::session::beside::{BestEdits, Found, Neighbour};
use shardscope::units::{Bytes, Quantity, Seconds, decimal, gib, seconds};
use yew::prelude::*;

use super::layouts::{capacity, change};
use crate::app::action::Action;
use crate::app::context::{send, use_dispatch};
use crate::app::ui::Search;
use crate::app::widgets::{remark, wide};
use crate::app::words::sentence;

/// Changes that are shown before the rest is expanded.
const SHOWN: usize = 8;
/// Differences as a share of the plan's own above which a bar grows no further.
const MOST: f64 = 0.5;

#[derive(Properties, PartialEq)]
pub(super) struct Props {
    pub search: Search,
    pub found: Rc<Found>,
}

/// By how much a neighbour's step and peak differ, as shares of the plan's step and of the device.
struct Difference<'a> {
    of: &'a Neighbour,
    /// What it gains and costs, if known.
    note: String,
    step: f64,
    peak: f64,
}

#[component(Around)]
pub(super) fn around(Props { search, found }: &Props) -> Html {
    let around = &found.around;
    // Known at the end of a search.
    let Some(own) = &around.own else { return html!() };
    let device = capacity(search).number().max(1.0);
    let difference = |of| {
        let of: &Neighbour = of;
        let step = of.layout.step().get() / own.layout.step().get().max(f64::MIN_POSITIVE) - 1.0;
        Difference {
            of,
            note: String::new(),
            step,
            peak: (of.layout.peak().number() - own.layout.peak().number()) / device,
        }
    };
    let mut moves: Vec<_> = around.moves.iter().map(difference).collect();
    let reach = |one: &Difference<'_>| one.step.abs().max(one.peak.abs());
    moves.sort_by(|one, other| reach(other).total_cmp(&reach(one)));
    let published: Vec<_> = around.published.iter().map(difference).collect();
    let edits: Vec<_> = around.edits.iter().map(|one| noted(one, own, difference(&one.plan))).collect();
    let (first, rest) = moves.split_at(moves.len().min(SHOWN));
    html! {
        <section class="around" aria-labelledby="around-title">
            if !edits.is_empty() {
                <h3 class="sub">{ "Best changes" }</h3>
                <p class="small soft">
                    if own.fits {
                        { "The fastest plans that fit by one, two and three changes; largest saving per change first." }
                    } else {
                        { "The fastest plans that fit by one, two and three changes; fewest changes first." }
                    }
                </p>
                { table("Best plans by one, two and three changes", search, own, &edits) }
            }
            <h3 id="around-title" class="sub">{ "Sensitivity" }</h3>
            <p class="small soft">
                { format!("Each row changes one setting of the starting plan ({} per step, peak {}); largest effects first.", seconds(own.layout.step()), gib(own.layout.peak())) }
            </p>
            { table("The largest effects", search, own, first) }
            if !rest.is_empty() {
                <details>
                    <summary>{ format!("{} more", rest.len()) }</summary>
                    { table("Smaller effects", search, own, rest) }
                </details>
            }
            if !published.is_empty() {
                <h3 class="sub">{ "Published layouts of this model" }</h3>
                <p class="small soft">{ "Their parallel sizes, stages and recomputation on these GPUs; everything else as in the starting plan." }</p>
                { table("Step and peak of published layouts", search, own, &published) }
            }
        </section>
    }
}

/// What the changes save per change, gain and cost.
fn noted<'a>(one: &BestEdits, own: &Neighbour, difference: Difference<'a>) -> Difference<'a> {
    let saved = own.layout.step() - one.plan.layout.step();
    // As many changes as a handful: an `f64` holds them.
    let each = u32::try_from(one.count).map_or(saved.get(), |count| saved.get() / f64::from(count.max(1)));
    let per_change = (own.fits && one.count > 1 && each > 0.0)
        .then(|| format!("{} saved per change", seconds(Seconds::new(each))));
    let effect = Some(one.effect.clone()).filter(|effect| !effect.is_empty());
    let parts: Vec<String> = per_change.into_iter().chain(effect).collect();
    Difference { note: parts.join("; "), ..difference }
}

fn table(label: &'static str, search: &Search, own: &Neighbour, all: &[Difference<'_>]) -> Html {
    wide(
        label,
        html! { <table class="figures around-table">
            <thead>
                <tr>
                    <th scope="col">{ "change" }</th>
                    <th scope="col" colspan="2">{ "step" }</th>
                    <th scope="col" colspan="2">{ "peak" }</th>
                    <th scope="col"><span class="hidden">{ "preview" }</span></th>
                </tr>
            </thead>
            <tbody>{ for all.iter().map(|one| row(search, own, one)) }</tbody>
        </table> },
    )
}

fn row(search: &Search, own: &Neighbour, one: &Difference<'_>) -> Html {
    let Neighbour { about, layout, fits } = one.of;
    html! {
        <>
        <tr class={(layout.changes == search.chosen).then_some("chosen")}>
            <th scope="row">{ about }</th>
            <td class="bar-cell">{ both_ways(one.step) }</td>
            <td class="number">{ more_seconds(layout.step(), own.layout.step()) }</td>
            <td class="bar-cell">{ both_ways(one.peak) }</td>
            <td class="number">
                { more_gib(layout.peak(), own.layout.peak()) }
                if !fits {
                    <span class="out-mark">{ " out of memory" }</span>
                } else if layout.tight {
                    <span class="tight-mark">{ " tight" }</span>
                }
            </td>
            <td><TryOn search={search.clone()} of={one.of.clone()} /></td>
        </tr>
        if !one.note.is_empty() { { remark(6, sentence(&one.note)) } }
        </>
    }
}

/// A bar from the middle: to the left for less, to the right for more.
fn both_ways(share: f64) -> Html {
    let length = share.abs().min(MOST) / MOST * 50.0;
    let x = if share < 0.0 { 50.0 - length } else { 50.0 };
    html! {
        <svg class="bar both-ways" aria-hidden="true">
            <rect class={if share > 0.0 { "more" } else { "less" }} x={decimal(x, 1) + "%"} width={decimal(length, 1) + "%"} height="100%" />
            <line x1="50%" x2="50%" y1="0" y2="100%" />
        </svg>
    }
}

fn signed(is_less: bool, amount: String) -> String {
    format!("{}{amount}", if is_less { "−" } else { "+" })
}

fn more_seconds(now: Seconds, own: Seconds) -> String {
    let by = now - own;
    signed(by < Seconds::ZERO, seconds(Seconds::new(by.get().abs())))
}

fn more_gib(now: Bytes, own: Bytes) -> String {
    if now == own {
        return "as now".to_owned();
    }
    signed(now < own, gib(Bytes::new(now.get().abs_diff(own.get()))))
}

#[derive(Properties, PartialEq)]
struct TryOnProps {
    search: Search,
    of: Neighbour,
}

/// The button that shows a neighbour as a plan; the list stays.
#[component(TryOn)]
fn try_on(TryOnProps { search, of }: &TryOnProps) -> Html {
    let dispatch = use_dispatch();
    if of.layout.changes == search.chosen {
        return html! { <span class="soft">{ "shown" }</span> };
    }
    let changes = of.layout.changes.clone();
    html! {
        <button type="button" class="button" title={change(&of.layout)} onclick={send(&dispatch, move || Action::Look(changes.clone()))}>
            { "Preview" }
        </button>
    }
}
