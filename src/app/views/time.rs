//! How long a step takes, and where it goes.

use shardscope::estimate::time::{Time as StepTime, unknowns};
use shardscope::quantity::{Quantity, percent, rounded, seconds, tflops};
use shardscope::session::{Branch, Held, Shown};
use yew::prelude::*;

use crate::app::parts::Tree;

#[derive(Properties, PartialEq)]
pub(crate) struct Props {
    pub shown: Held<Shown>,
}

#[component]
pub(crate) fn Time(props: &Props) -> Html {
    let time = &props.shown.time;
    html! {
        <section class="panel" id="time" aria-labelledby="time-title">
            <header>
                <h2 id="time-title">{ "Time of a step" }</h2>
                <p>{ "An estimate from the arithmetic, the messages and the schedule; the bounds are what it would be if everything overlapped that can, and if nothing did." }</p>
            </header>
            { range(time) }
            <dl class="stats">
                <div><dt>{ "Tokens per second" }</dt><dd>{ rounded(time.tokens_per_second) }<span class="also">{ format!("{} per GPU", rounded(time.tokens_per_second_per_gpu)) }</span></dd></div>
                <div><dt>{ "Model FLOPs" }</dt><dd>{ tflops(time.model_rate) }<span class="also">{ format!("per GPU, {} of the peak (MFU)", percent(time.mfu)) }</span></dd></div>
                <div><dt>{ "Hardware FLOPs" }</dt><dd>{ tflops(time.hardware_rate) }<span class="also">{ format!("recomputation counted, {} (HFU)", percent(time.hfu)) }</span></dd></div>
                <div><dt>{ "Pipeline bubble" }</dt><dd>{ percent(time.bubble_fraction) }<span class="also">{ format!("schedule {}", time.schedule.name) }</span></dd></div>
            </dl>
            <h3 class="sub">{ "Where it goes" }</h3>
            <Tree root={Branch::of_time(&time.breakdown)} open={1} />
            <ul class="unknowns">{ for unknowns(&props.shown.plan).iter().map(|unknown| html! { <li>{ unknown.sentence() }</li> }) }</ul>
        </section>
    }
}

/// The estimate between its bounds.
fn range(time: &StepTime) -> Html {
    let whole = time.upper_bound.number().max(f64::MIN_POSITIVE) * 1.05;
    let at = |value: f64| format!("{:.2}%", value / whole * 100.0);
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
