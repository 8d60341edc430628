//! How long a step takes, and where it goes.

use shardscope::estimate::time::Time;
use shardscope::session::{Branch, Shown};
use shardscope::units::{
    Count, FlopsPerSecond, Quantity, Seconds, decimal, percent, rounded, seconds, tflops,
};
use yew::prelude::*;

use super::own_figures::OwnFigures;
use super::own_run::OwnRun;
use super::panel::{Panel, PlanProps, Story};
use crate::app::action::Action;
use crate::app::context::{send, use_dispatch};
use crate::app::panel_id::PanelId;
use crate::app::widgets::{Term, heads, remark, section, stat, tree, wide};
use crate::app::words::schedule_name;

pub(super) const PANEL: Panel = Panel {
    id: PanelId::Time,
    tab: Some("Time"),
    view: |shown| html! { <StepTime {shown} /> },
    story: Some(Story {
        title: "Where the time goes",
        text: |shown| {
            let time = &shown.report.time;
            format!(
                "A step of {} is {} {} per second. The tree takes it apart: GEMMs and other kernels, exposed communication, and the pipeline bubble.",
                seconds(time.step),
                rounded(time.tokens_per_second),
                time.counted_tokens
            )
        },
    }),
};

#[component(StepTime)]
fn step_time(PlanProps { shown }: &PlanProps) -> Html {
    let dispatch = use_dispatch();
    let report = &shown.report;
    let time = &report.time;
    let about = html! {
        <>
            { "Estimated from kernels, collectives and the schedule. The bounds assume that everything that can " }
            <Term name="overlap">{ "overlap" }</Term>{ " does, and that nothing does." }
        </>
    };
    let parts = Branch::of_time(&time.breakdown);
    let encodes = shown.plan.model().encoder.is_some();
    let tokens = if encodes { "Target tokens per second" } else { "Tokens per second" };
    section(
        "time",
        "",
        "Step time",
        about,
        html! { <>{ range(time) }
        <dl class="stats">
            { stat(html!(tokens), rounded(time.tokens_per_second), html!(format!("{} per GPU", rounded(time.tokens_per_second_per_gpu)))) }
            { stat(html! { <Term name="model FLOPs">{ "Model FLOPs" }</Term> }, tflops(time.model_rate), html! { <>{ format!("per GPU, {} ", percent(time.mfu)) }<Term name="MFU" /></> }) }
            { stat(html! { <Term name="hardware FLOPs">{ "Hardware FLOPs" }</Term> }, tflops(time.hardware_rate), html! { <>{ format!("with recomputation, {} ", percent(time.hfu)) }<Term name="HFU" /></> }) }
            { stat(html! { <>{ "Pipeline " }<Term name="bubble" /></> }, percent(time.bubble_fraction), html!(schedule_name(time.schedule.name))) }
        </dl>
        if let Some(training) = &time.training {
            <p class="training">{ training.sentence() }</p>
        }
        <OwnFigures />
        <OwnRun shown={shown.clone()} />
        <h3 class="sub">{ "Breakdown" }</h3>
        { tree(&parts, 2) }
        <h3 class="sub">{ "FLOPs per step, by convention" }</h3>
        { conventions(shown) }
        <ul class="unknowns">
            { for report.unknowns.iter().map(|unknown| html! { <li>{ unknown.sentence().to_string() }</li> }) }
        </ul>
        <p class="small">
            <button type="button" class="link" onclick={send(&dispatch, || Action::Panel(PanelId::Tool))}>
                { "Comparison with the 2023 Megatron analysis tool" }
            </button>
        </p></> },
    )
}

/// Every convention with its rate: shares of the peak are only comparable within one.
fn conventions(shown: &Shown) -> Html {
    let time = &shown.report.time;
    let gpus = Count::new(shown.plan.layout().world_size.max(1)).number();
    let figures = |flops: Option<shardscope::units::Flops>| match flops {
        Some(flops) => {
            let rate = FlopsPerSecond::new(flops.get() / time.step.get() / gpus);
            // The rate of one convention over the peak; MFU is one of these.
            [format!("{:.3e}", flops.get()), tflops(rate), percent(rate.get() / time.peak.get())]
        }
        None => ["does not apply".to_owned(), String::new(), String::new()],
    };
    html! {
        { wide("FLOPs per step by convention", html! { <table class="figures conventions">
                <thead>{ heads(&["Convention", ">FLOP", ">per GPU", ">of peak"]) }</thead>
                <tbody>
                    { for time.flops.conventions().iter().map(|convention| html! {
                        <>
                            <tr>
                                <th scope="row">{ convention.name }</th>
                                { for figures(convention.flops).into_iter().map(|figure| html! { <td class="number">{ figure }</td> }) }
                            </tr>
                            { remark(4, convention.formula.meaning) }
                        </>
                    }) }
                </tbody>
            </table> }) }
    }
}

/// A time with a non-breaking space before its unit.
fn unbroken(time: Seconds) -> String {
    seconds(time).replace(' ', "\u{a0}")
}

/// The estimate between its bounds.
fn range(time: &Time) -> Html {
    // A little beyond the upper bound, so that its end is visible.
    let whole = time.upper_bound.number().max(f64::MIN_POSITIVE) * 1.05;
    let at = |value: f64| decimal(value / whole * 100.0, 2) + "%";
    let (low, high) = (time.lower_bound.number(), time.upper_bound.number());
    let step = at(time.step.number());
    html! {
        <figure class="range">
            <figcaption>
                <strong>{ unbroken(time.step) }</strong>
                { format!(" per step. {} {} to {}; fully overlapped {}, nothing overlapped {}.",
                    if time.interval.family.is_earned() { "90% of runs like this take" } else { "No measurements on this accelerator; assumed" },
                    unbroken(time.interval.low), unbroken(time.interval.high), unbroken(time.lower_bound), unbroken(time.upper_bound)) }
                if !time.interval.narrows.is_empty() {
                    { " " }
                    <small>{ format!("The range narrows with {}.", time.interval.narrows.join("; ")) }</small>
                }
            </figcaption>
            <svg class="bar" aria-hidden="true">
                <rect class="band" x={at(low)} width={at(high - low)} height="100%" />
                <line class="estimate" x1={step.clone()} x2={step} y1="0" y2="100%" />
            </svg>
        </figure>
    }
}
