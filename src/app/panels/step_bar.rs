//! The parts of a step, the longest first, as one bar.

use shardscope::session::{Shown, StepPart, step_parts};
use shardscope::units::{decimal, percent};
use yew::prelude::*;

use crate::app::widgets::{Term, swatch};
use crate::app::words::term_of;

/// The short name of a part of the breakdown.
fn part_name(label: &str) -> &str {
    match label {
        "tensor" => "exposed TP",
        "data" => "exposed DP",
        "context" => "exposed CP",
        "expert" => "exposed EP",
        "pipeline" => "exposed PP",
        "bubble" => "pipeline bubble",
        other => other,
    }
}

fn part_term(label: &str) -> &str {
    match label {
        "tensor" | "data" | "context" | "expert" | "pipeline" => term_of(label),
        // Not the optimizer's states, which the glossary term is about.
        "optimizer" => "",
        other => other,
    }
}

pub(super) fn step_bar(shown: &Shown) -> Html {
    let parts = step_parts(&shown.report.time);
    let at = |share: f64| decimal(share * 100.0, 3) + "%";
    html! {
        <figure class="step-bar">
            <svg class="bar" aria-hidden="true">
                { for parts.iter().enumerate().map(|(place, part)| html! {
                    <rect class={shade(place)} x={at(part.from)} width={at(part.share)} height="100%" />
                }) }
            </svg>
            <ul class="legend">{ for parts.iter().enumerate().map(|(place, part)| entry(place, part)) }</ul>
        </figure>
    }
}

/// The longest part is the darkest.
fn shade(place: usize) -> String {
    format!("shade-{}", place.min(5))
}

fn entry(place: usize, part: &StepPart) -> Html {
    let term = part_term(&part.label).to_owned();
    let name = part_name(&part.label).to_owned();
    html! {
        <li>
            { swatch(classes!(shade(place))) }
            <span><Term name={term}>{ name }</Term>{ " " }{ percent(part.share) }</span>
        </li>
    }
}
