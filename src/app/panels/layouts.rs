//! Layouts that a search found: as a table and as the front of peak memory against step time.

use shardscope::plan::Recompute;
use shardscope::quantity::{Bytes, Quantity, decimal, gib, seconds};
use shardscope::search::Outcome;
use shardscope::session::Event;
use yew::prelude::*;

use super::advice::{Apply, written};
use crate::app::context::{AppContext, send, use_dispatch};
use crate::app::widgets::Wide;

#[derive(Properties, PartialEq)]
pub(crate) struct Props {
    /// The fastest first.
    pub outcomes: Vec<Outcome>,
    /// Whether there is little room: a row is a button then.
    #[prop_or_default]
    pub compact: bool,
}

const NARROW: &[&str] = &["TP", "PP", "VPP", "CP", "EP", "MBS"];

fn sizes(outcome: &Outcome) -> [u64; 6] {
    let of = &outcome.variant;
    [of.tensor, of.pipeline, of.virtual_pipeline, of.context, of.expert, of.micro_batch_size]
}

fn recompute(of: &Recompute) -> &'static str {
    match of {
        Recompute::None => "none",
        Recompute::Selective(_) => "selective",
        Recompute::Uniform { .. } | Recompute::Block { .. } => "full",
    }
}

/// The layouts with their sizes in columns of their own.
#[component(Layouts)]
pub(crate) fn layouts(props: &Props) -> Html {
    let dispatch = use_dispatch();
    let capacity = use_context::<AppContext>()
        .and_then(|app| app.session.shown.as_ref().map(|shown| shown.plan.cluster().accelerator.memory));
    let capacity = capacity.unwrap_or(Bytes::ZERO).number().max(1.0);
    let slowest = props.outcomes.iter().map(|one| one.step.get()).fold(f64::MIN_POSITIVE, f64::max);
    let bar = |share: f64, class: &'static str| {
        html! {
            <svg class={classes!("bar", class)} aria-hidden="true">
                <rect width={decimal(share.min(1.0) * 100.0, 1) + "%"} height="100%" />
            </svg>
        }
    };
    if props.compact {
        return html! {
            <ol class="layouts">
                { for props.outcomes.iter().map(|one| {
                    let names = NARROW.iter().zip(sizes(one));
                    let cut: Vec<String> = names
                        .filter(|(name, size)| *size > 1 || matches!(**name, "TP" | "PP" | "MBS"))
                        .map(|(name, size)| format!("{name} {size}"))
                        .collect();
                    let values: Vec<_> =
                        one.changes.iter().map(|(field, value)| (field.name().to_owned(), value.clone())).collect();
                    let now = one.changes.is_empty();
                    html! {
                        <li>
                            <button
                                type="button"
                                class="layout"
                                aria-pressed={now.to_string()}
                                title={if now { "this plan".to_owned() } else { written(&one.changes) }}
                                onclick={send(&dispatch, move || Event::Try(values.clone()).into())}
                            >
                                <span>{ format!("{}, recompute {}", cut.join(" · "), recompute(&one.variant.recompute)) }</span>
                                <strong>{ seconds(one.step) }</strong>
                                { bar(one.peak.number() / capacity, "peak-bar") }
                                <span class="soft">{ gib(one.peak) }</span>
                            </button>
                        </li>
                    }
                }) }
            </ol>
        };
    }
    html! {
        <Wide label="Layouts found">
            <table class="figures layout-table">
                <thead>
                    <tr>
                        { for NARROW.iter().map(|name| html! { <th class="number" scope="col">{ *name }</th> }) }
                        <th scope="col">{ "recompute" }</th>
                        <th scope="col" colspan="2">{ "step" }</th>
                        <th scope="col" colspan="2">{ "peak" }</th>
                        <th scope="col"><span class="hidden">{ "apply" }</span></th>
                    </tr>
                </thead>
                <tbody>
                    { for props.outcomes.iter().map(|one| html! {
                        <tr>
                            { for sizes(one).into_iter().map(|size| html! { <td class="number">{ size }</td> }) }
                            <td>{ recompute(&one.variant.recompute) }</td>
                            <td class="bar-cell">{ bar(one.step.get() / slowest, "step-time") }</td>
                            <td class="number strong">{ seconds(one.step) }</td>
                            <td class="bar-cell">{ bar(one.peak.number() / capacity, "peak-bar") }</td>
                            <td class="number">{ gib(one.peak) }</td>
                            <td>
                                if one.changes.is_empty() {
                                    <span class="soft">{ "this plan" }</span>
                                }
                                <Apply change={one.changes.clone()} />
                            </td>
                        </tr>
                    }) }
                </tbody>
            </table>
        </Wide>
    }
}

/// Width and height of the front, in its own units.
const FRONT: (f64, f64) = (400.0, 150.0);
/// Around it, for the names of the axes.
const EDGE: f64 = 24.0;

#[derive(Properties, PartialEq)]
pub(crate) struct FrontProps {
    pub outcomes: Vec<Outcome>,
}

/// Peak memory against step time of the layouts of which none is both smaller and faster. Each point applies its layout.
#[component(Front)]
pub(crate) fn front(props: &FrontProps) -> Html {
    let dispatch = use_dispatch();
    let outcomes = &props.outcomes;
    if outcomes.len() < 2 {
        return html!();
    }
    let peaks = || outcomes.iter().map(|one| one.peak.in_gib());
    let steps = || outcomes.iter().map(|one| one.step.get());
    let (low, high) = (peaks().fold(f64::MAX, f64::min), peaks().fold(0.0, f64::max));
    let (quick, slow) = (steps().fold(f64::MAX, f64::min), steps().fold(0.0, f64::max));
    let part = |value: f64, from: f64, to: f64| (value - from) / (to - from).max(f64::MIN_POSITIVE);
    let x = |one: &Outcome| EDGE + part(one.peak.in_gib(), low, high) * (FRONT.0 - 2.0 * EDGE);
    let y = |one: &Outcome| FRONT.1 - EDGE - part(one.step.get(), quick, slow) * (FRONT.1 - 2.0 * EDGE);
    let label = format!(
        "Peak memory against step time: {} layouts from {:.0} GiB and {:.1} s to {:.0} GiB and {:.1} s",
        outcomes.len(),
        low,
        slow,
        high,
        quick
    );
    html! {
        <figure class="front">
            <svg viewBox={format!("0 0 {} {}", FRONT.0, FRONT.1)} role="img" aria-label={label}>
                <path class="axis" d={format!("M{EDGE} 8V{0}H{1}", FRONT.1 - EDGE + 8.0, FRONT.0 - 8.0)} />
                <text x={EDGE.to_string()} y="12" dx="6">{ format!("step {}", decimal(slow, 1)) }{ " s" }</text>
                <text class="end" x={(FRONT.0 - 8.0).to_string()} y={(FRONT.1 - 2.0).to_string()}>
                    { format!("peak {} GiB", decimal(high, 0)) }
                </text>
                <text x={EDGE.to_string()} y={(FRONT.1 - 2.0).to_string()}>{ format!("{} GiB", decimal(low, 0)) }</text>
                { for outcomes.iter().map(|one| {
                    let values: Vec<_> =
                        one.changes.iter().map(|(field, value)| (field.name().to_owned(), value.clone())).collect();
                    let now = one.changes.is_empty();
                    html! {
                        <circle
                            class={now.then_some("now")}
                            cx={decimal(x(one), 1)}
                            cy={decimal(y(one), 1)}
                            r={if now { "6" } else { "4.5" }}
                            onclick={send(&dispatch, move || Event::Try(values.clone()).into())}
                        >
                            <title>
                                { format!("{}, {}: {}", seconds(one.step), gib(one.peak), if now { "this plan".to_owned() } else { written(&one.changes) }) }
                            </title>
                        </circle>
                    }
                }) }
            </svg>
            <figcaption class="soft small">{ "Peak memory × step time; a point applies its layout." }</figcaption>
        </figure>
    }
}
