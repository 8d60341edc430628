//! The first screen: the figures everyone asks for, memory by stage, the cluster, one step.

use shardscope::session::Shown;
use shardscope::units::{Count, Quantity, Seconds, grouped, percent, rounded, seconds, tflops};
use yew::prelude::*;

use super::mini_map::MiniMap;
use super::panel::{Panel, PlanProps};
use super::phase_bars::phase_bars;
use super::schedule::{MiniSchedule, work_legend};
use super::stage_bars::StageBars;
use super::step_bar::step_bar;
use crate::app::action::Action;
use crate::app::context::{send, use_dispatch};
use crate::app::panel_id::PanelId;
use crate::app::widgets::{Term, stat};
use crate::app::words::{plural, schedule_name};

pub(super) const PANEL: Panel = Panel {
    id: PanelId::Overview,
    tab: Some("Overview"),
    view: |shown| html! { <Overview {shown} /> },
    story: None,
};

#[component(Overview)]
fn overview(PlanProps { shown }: &PlanProps) -> Html {
    let dispatch = use_dispatch();
    let open = |panel: PanelId, label: &'static str| {
        html! {
            <button type="button" class="link small" onclick={send(&dispatch, move || Action::Panel(panel))}>
                { label }
            </button>
        }
    };
    let card = |class: &'static str, title: Html, more: Html, inside: Html| {
        html! {
            <section class={classes!("card", class)}>
                <header><h3>{ title }</h3>{ more }</header>
                { inside }
            </section>
        }
    };
    html! {
        <section id="overview" class="overview" aria-labelledby="overview-title">
            <h2 id="overview-title" class="hidden">{ "Overview" }</h2>
            { stats(shown) }
            if shown.plan.recipe().rollout.is_some() {
                <p class="soft small">{ "Step time, tokens/s and MFU are for training; generating rollouts is not included." }</p>
            }
            <div class="cards">
                { card(
                    "card-memory",
                    html!(peak_by(shown)),
                    open(PanelId::Memory, "down to the tensor"),
                    html! { <>{ phase_bars(shown) }<StageBars shown={shown.clone()} /></> },
                ) }
                { card(
                    "card-map",
                    html!("Cluster"),
                    open(PanelId::Map, "whole map"),
                    html! { <MiniMap shown={shown.clone()} /> },
                ) }
                { card(
                    "card-schedule",
                    html! { <>{ one_step(shown) }<span class="work-legend">{ work_legend(shown) }</span></> },
                    open(PanelId::Schedule, "look closer"),
                    html! { <MiniSchedule shown={shown.clone()} /> },
                ) }
                { card(
                    "card-time",
                    html! { <>{ "Step time breakdown " }<span class="soft">{ "exposed communication only" }</span></> },
                    open(PanelId::Time, "why"),
                    step_bar(shown),
                ) }
            </div>
        </section>
    }
}

/// The figures everyone asks for first.
fn stats(shown: &Shown) -> Html {
    let (recipe, time) = (shown.plan.recipe(), &shown.report.time);
    let parameters = &shown.report.parameters;
    let encodes = shown.plan.model().encoder.is_some();
    let tokens =
        // As floats: the product may exceed 64 bits before it is rounded for show.
        Count::new(recipe.global_batch_size).number() * Count::new(shown.plan.model().seq_length).number();
    let mut exact = grouped(parameters.total.get());
    if parameters.active_per_token != parameters.total {
        exact = format!("{exact}, {} active per token", rounded(parameters.active_per_token.number()));
    }
    // Adapters and frozen parts: anyone who tunes with LoRA looks for this number first.
    if parameters.trained != parameters.total {
        exact = format!("{exact}, {} trainable", rounded(parameters.trained.number()));
    }
    // There is no published run on such an accelerator, and anyone who reads the time must see that first.
    let calibrated = if shown.report.is_calibrated() { "" } else { "not calibrated, " };
    let range = format!("{calibrated}{}", between(time.interval.low, time.interval.high));
    let (rate, step) =
        if encodes { ("Target tokens/s", "Target tokens per step") } else { ("Tokens/s", "Tokens per step") };
    html! {
        <dl class="stats">
            { stat(html! { <Term name="step time">{ "Step time" }</Term> }, seconds(time.step), html!(range)) }
            { stat(html!(rate), rounded(time.tokens_per_second), html!(format!("{} per GPU", rounded(time.tokens_per_second_per_gpu)))) }
            { stat(html! { <Term name="MFU" /> }, percent(time.mfu), html!(tflops(time.model_rate) + "/GPU")) }
            { stat(html!("Parameters"), rounded(parameters.total.number()), html!(exact)) }
            { stat(html!(step), rounded(tokens), html! {
                    <>
                        { grouped(recipe.num_micro_batches) }{ " " }
                        <Term name="micro-batch">{ plural(recipe.num_micro_batches, "micro-batch", "micro-batches") }</Term>
                        { format!(" of {}", grouped(recipe.micro_batch_size)) }
                    </>
                }) }
        </dl>
    }
}

/// Two times, with the unit only once if it is the same, to avoid a line break.
fn between(low: Seconds, high: Seconds) -> String {
    let (low, high) = (seconds(low), seconds(high));
    // From the first space on: `1 h 20 min` and `1 h 40 min` are written in full.
    match (low.split_once(' '), high.split_once(' ')) {
        (Some((least, unit)), Some((_, other))) if unit == other => format!("{least} to {high}"),
        // Breaks only between the two: the last unit must not be on a line by itself.
        _ => {
            let unbroken = |time: &str| time.replace(' ', "\u{a0}");
            format!("{} to {}", unbroken(&low), unbroken(&high))
        }
    }
}

/// A step by its schedule, if there is a pipeline that needs one.
fn one_step(shown: &Shown) -> String {
    match shown.stages.len() {
        0 | 1 => "One step ".to_owned(),
        _ => format!("One step, {} ", schedule_name(shown.report.time.schedule.name)),
    }
}

/// How the memory bars are labelled.
fn peak_by(shown: &Shown) -> &'static str {
    match (shown.phases.is_empty(), shown.stages.len()) {
        (true, 0 | 1) => "Peak memory per GPU",
        (true, _) => "Peak memory per pipeline stage",
        (false, _) => "Peak memory per phase and stage",
    }
}
