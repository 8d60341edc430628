//! The first thing to see: does it fit, how fast, where does it go.

use shardscope::catalog::accelerator_names;
use shardscope::quantity::{Count, Quantity, gib, grouped, percent, rounded, seconds, tflops};
use shardscope::session::{Event, Fit, Held, Shown};
use web_sys::HtmlSelectElement;
use yew::prelude::*;

use super::StageBars;
use crate::app::dom;
use crate::app::parts::{Icon, Sign};

#[derive(Properties, PartialEq)]
pub(crate) struct Props {
    pub shown: Held<Shown>,
    pub stale: bool,
    pub send: Callback<Event>,
}

#[component]
pub(crate) fn Verdict(props: &Props) -> Html {
    let shown = &props.shown;
    let accelerator = &shown.plan.cluster().accelerator;
    let onchange = props.send.reform(|event: yew::Event| Event::Set {
        name: "accelerator".to_owned(),
        value: event.target_dyn_into::<HtmlSelectElement>().map(|select| select.value()).unwrap_or_default(),
    });
    let ondownload = {
        let shown = shown.clone();
        move |_| dom::download("shardscope.json", "application/json", &shown.json())
    };
    let picker = html! {
        <label class="accelerator">{ "Accelerator" }
            <select class="field" {onchange}>
                { for accelerator_names().map(|name| html! { <option value={name} selected={name == accelerator.name}>{ name }</option> }) }
            </select>
        </label>
    };
    html! {
        <section class="panel verdict" aria-labelledby="verdict-title">
            <header>
                <h2 id="verdict-title" class="hidden">{ "Verdict" }</h2>
                { picker }
                <button type="button" class="button" onclick={ondownload}><Icon sign={Sign::Download} />{ "JSON" }</button>
            </header>
            if props.stale {
                <p class="stale" role="status"><Icon sign={Sign::Tight} />{ "The text as it is now makes no plan. This is the answer to the last one that did." }</p>
            }
            if let Some(worst) = shown.worst() {
                <p class={classes!("big", worst.fit.class())} role="status">
                    <Icon sign={sign(worst.fit)} />
                    <strong>{ worst.fit.words() }</strong>
                    <span>{ format!("on {}: the fullest GPU, of stage {}, needs {} of {}", accelerator.name, worst.stage, gib(worst.reserved), gib(accelerator.memory)) }</span>
                </p>
                { stats(shown) }
                <StageBars stages={shown.stages.clone()} capacity={accelerator.memory} />
            }
        </section>
    }
}

/// The figures everyone asks for first.
fn stats(shown: &Held<Shown>) -> Html {
    let (layout, recipe) = (shown.plan.layout(), shown.plan.recipe());
    let parameters = &shown.report.parameters;
    let tokens =
        Count::new(recipe.global_batch_size).number() * Count::new(shown.plan.model().seq_length).number();
    let mut cut = format!("TP {} × PP {} × DP {}", layout.tensor, layout.pipeline, layout.data);
    for (name, degree) in [("CP", layout.context), ("EP", layout.expert)] {
        if degree > 1 {
            cut.push_str(&format!(" × {name} {degree}"));
        }
    }
    html! {
        <dl class="stats">
            <div><dt>{ "Step time" }</dt><dd>{ seconds(shown.time.step) }
                <span class="also">{ format!("{} to {}", seconds(shown.time.lower_bound), seconds(shown.time.upper_bound)) }</span></dd></div>
            <div><dt>{ "Tokens per second" }</dt><dd>{ rounded(shown.time.tokens_per_second) }
                <span class="also">{ format!("{} per GPU, MFU {}", tflops(shown.time.model_rate), percent(shown.time.mfu)) }</span></dd></div>
            <div><dt>{ "Parameters" }</dt><dd>{ rounded(parameters.total.number()) }<span class="also">{ grouped(parameters.total.get()) }</span>
                if parameters.active_per_token != parameters.total {
                    <span class="also">{ format!("{} active per token", rounded(parameters.active_per_token.number())) }</span>
                }
            </dd></div>
            <div><dt>{ "GPUs" }</dt><dd>{ grouped(layout.world_size) }<span class="also">{ cut }</span></dd></div>
            <div><dt>{ "Tokens per step" }</dt><dd>{ rounded(tokens) }
                <span class="also">{ format!("{} micro-batches of {}", grouped(recipe.num_micro_batches), grouped(recipe.micro_batch_size)) }</span></dd></div>
        </dl>
    }
}

const fn sign(fit: Fit) -> Sign {
    match fit {
        Fit::Fits => Sign::Good,
        Fit::Tight => Sign::Tight,
        Fit::DoesNotFit => Sign::Bad,
    }
}
