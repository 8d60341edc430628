//! The first thing to see: does it fit, how fast, where does it go.

use shardscope::catalog::accelerator_names;
use shardscope::quantity::{Count, Quantity, gib, grouped, percent, rounded, seconds, tflops};
use shardscope::session::{Event, Fit, Shown};
use web_sys::HtmlSelectElement;
use yew::prelude::*;

use super::knobs::knob_row;
use super::stages::stage_bars;
use crate::app::desk::Desk;
use crate::app::dom;
use crate::app::parts::{Sign, icon};

pub(crate) fn verdict(desk: &Desk) -> Html {
    let shown = &desk.shown;
    let accelerator = &shown.plan.cluster().accelerator;
    html! {
        <section class="panel verdict" aria-labelledby="verdict-title">
            <header><h2 id="verdict-title" class="hidden">{ "Verdict" }</h2>{ picker(desk) }{ downloads(desk) }</header>
            if let Some(worst) = shown.worst() {
                <p class={classes!("big", worst.fit.class())} role="status">
                    { icon(sign(worst.fit)) }
                    <strong>{ worst.fit.words() }</strong>
                    <span>{ format!("on {}: the fullest GPU, of stage {}, needs {} of {}", accelerator.name, worst.stage, gib(worst.reserved), gib(accelerator.memory)) }</span>
                </p>
            }
            { stats(shown) }
            { stage_bars(&shown.stages, accelerator.memory) }
            { knob_row(desk) }
        </section>
    }
}

fn picker(desk: &Desk) -> Html {
    let onchange = desk.send.reform(|event: yew::Event| Event::Set {
        name: "accelerator".to_owned(),
        value: event.target_dyn_into::<HtmlSelectElement>().map(|select| select.value()).unwrap_or_default(),
    });
    let chosen = desk.shown.plan.cluster().accelerator.name.as_str();
    html! {
        <label class="accelerator">{ "Accelerator" }
            <select class="field" {onchange}>
                { for accelerator_names().map(|name| html! { <option value={name} selected={name == chosen}>{ name }</option> }) }
            </select>
        </label>
    }
}

fn downloads(desk: &Desk) -> Html {
    let give = |name: &'static str, kind: &'static str, text: fn(&Shown) -> String| {
        let shown = desk.shown.clone();
        Callback::from(move |_: MouseEvent| dom::download(name, kind, &text(&shown)))
    };
    html! {
        <div class="downloads">
            <button type="button" class="button" title="Download the report as a JSON document" onclick={give("shardscope.json", "application/json", Shown::json)}>{ icon(Sign::Download) }{ "JSON" }</button>
            <button type="button" class="button" title="Download the report as text" onclick={give("shardscope.txt", "text/plain", Shown::text)}>{ icon(Sign::Download) }{ "Text" }</button>
        </div>
    }
}

/// The figures everyone asks for first.
fn stats(shown: &Shown) -> Html {
    let (layout, recipe, time) = (shown.plan.layout(), shown.plan.recipe(), &shown.report.time);
    let parameters = &shown.report.parameters;
    let tokens =
        Count::new(recipe.global_batch_size).number() * Count::new(shown.plan.model().seq_length).number();
    let mut cut = format!("TP {} × PP {} × DP {}", layout.tensor, layout.pipeline, layout.data);
    for (name, degree) in [("CP", layout.context), ("EP", layout.expert)] {
        if degree > 1 {
            cut.push_str(&format!(" × {name} {degree}"));
        }
    }
    let mut exact = grouped(parameters.total.get());
    if parameters.active_per_token != parameters.total {
        exact.push_str(&format!(", {} active per token", rounded(parameters.active_per_token.number())));
    }
    let speed = format!("{} per GPU, MFU {}", tflops(time.model_rate), percent(time.mfu));
    let batches = format!(
        "{} micro-batches of {}",
        grouped(recipe.num_micro_batches),
        grouped(recipe.micro_batch_size)
    );
    html! {
        <dl class="stats">
            { stat("Step time", seconds(time.step), format!("{} to {}", seconds(time.lower_bound), seconds(time.upper_bound))) }
            { stat("Tokens per second", rounded(time.tokens_per_second), speed) }
            { stat("Parameters", rounded(parameters.total.number()), exact) }
            { stat("GPUs", grouped(layout.world_size), cut) }
            { stat("Tokens per step", rounded(tokens), batches) }
        </dl>
    }
}

/// A figure with its name above and more about it below.
pub(crate) fn stat(name: &'static str, figure: String, also: String) -> Html {
    html! { <div><dt>{ name }</dt><dd>{ figure }<span class="also">{ also }</span></dd></div> }
}

const fn sign(fit: Fit) -> Sign {
    match fit {
        Fit::Fits => Sign::Good,
        Fit::Tight => Sign::Tight,
        Fit::DoesNotFit => Sign::Bad,
    }
}
