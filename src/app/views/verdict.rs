//! The first thing to see: does it fit, how fast, where does it go.

use shardscope::catalog::accelerator_names;
use shardscope::quantity::gib;
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
                <StageBars stages={shown.stages.clone()} capacity={accelerator.memory} />
            }
        </section>
    }
}

const fn sign(fit: Fit) -> Sign {
    match fit {
        Fit::Fits => Sign::Good,
        Fit::Tight => Sign::Tight,
        Fit::DoesNotFit => Sign::Bad,
    }
}
