//! How long a step takes, and where it goes.

use shardscope::estimate::time::Time;
use shardscope::quantity::{Quantity, percent, rounded, seconds, tflops};
use shardscope::session::Branch;
use yew::prelude::*;

use super::verdict::stat;
use crate::app::desk::Desk;
use crate::app::parts::tree;

pub(crate) fn time(desk: &Desk) -> Html {
    let report = &desk.shown.report;
    let time = &report.time;
    html! {
        <section class="panel" id="time" aria-labelledby="time-title">
            <header>
                <h2 id="time-title">{ "Time of a step" }</h2>
                <p>{ "An estimate from the arithmetic, the messages and the schedule; the bounds are what it would be if everything overlapped that can, and if nothing did." }</p>
            </header>
            { range(time) }
            <dl class="stats">
                { stat("Tokens per second", rounded(time.tokens_per_second), format!("{} per GPU", rounded(time.tokens_per_second_per_gpu))) }
                { stat("Model FLOPs", tflops(time.model_rate), format!("per GPU, {} of the peak (MFU)", percent(time.mfu))) }
                { stat("Hardware FLOPs", tflops(time.hardware_rate), format!("recomputation counted, {} (HFU)", percent(time.hfu))) }
                { stat("Pipeline bubble", percent(time.bubble_fraction), format!("schedule {}", time.schedule.name)) }
            </dl>
            <h3 class="sub">{ "Where it goes" }</h3>
            { tree(&Branch::of_time(&time.breakdown), 1) }
            <ul class="unknowns">{ for report.unknowns.iter().map(|unknown| html! { <li>{ unknown.sentence() }</li> }) }</ul>
        </section>
    }
}

/// The estimate between its bounds.
fn range(time: &Time) -> Html {
    let whole = time.upper_bound.number().max(f64::MIN_POSITIVE) * 1.05;
    let at = |value: f64| shardscope::quantity::decimal(value / whole * 100.0, 2) + "%";
    let (low, high) = (time.lower_bound.number(), time.upper_bound.number());
    html! {
        <figure class="range">
            <figcaption><strong>{ seconds(time.step) }</strong>{ format!(" between {} and {}", seconds(time.lower_bound), seconds(time.upper_bound)) }</figcaption>
            <svg class="bar" aria-hidden="true">
                <rect class="band" x={at(low)} width={at(high - low)} height="100%" />
                <line class="estimate" x1={at(time.step.number())} x2={at(time.step.number())} y1="0" y2="100%" />
            </svg>
        </figure>
    }
}
