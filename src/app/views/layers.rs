//! The layers of the whole model beside what one GPU holds of each.

use shardscope::session::{Held, LayerFigures, LayerLine, Shown, layer_line};
use yew::prelude::*;

use crate::app::parts::Wide;

#[derive(Properties, PartialEq)]
pub(crate) struct Props {
    pub shown: Held<Shown>,
}

#[component]
pub(crate) fn Layers(props: &Props) -> Html {
    let root = use_memo(props.shown.clone(), |shown| layer_line(&shown.report.memory.layers));
    html! {
        <section class="panel" id="layers" aria-labelledby="layers-title">
            <header>
                <h2 id="layers-title">{ "Layers" }</h2>
                <p>{ "The whole model beside one GPU that holds the part: weights, and what is kept of one micro-batch for the backward pass." }</p>
            </header>
            <Wide label="Table of the layers">
                <div class="layers">
                    <div class="layer head" aria-hidden="true">
                        <span></span><span class="span">{ "whole model" }</span><span class="span">{ "one GPU" }</span>
                    </div>
                    <div class="layer head">
                        <span>{ "Part" }</span>
                        { for ["shape", "weights", "kept", "shape", "weights", "kept"].iter().map(|name| html! { <span class="number">{ *name }</span> }) }
                    </div>
                    { line(&root, 0) }
                </div>
            </Wide>
        </section>
    }
}

fn line(of: &LayerLine, depth: usize) -> Html {
    let cells = html! {
        <>
            <span class={format!("layer-name depth-{depth}")}>{ of.name }
                if of.times > 1 { <span class="times">{ format!(" × {}", of.times) }</span> }
            </span>
            { figures(&of.whole) }
            { figures(&of.sharded) }
        </>
    };
    if of.parts.is_empty() {
        return html! { <div class="layer">{ cells }</div> };
    }
    html! {
        <details open={depth < 1}>
            <summary class="layer">{ cells }</summary>
            { for of.parts.iter().map(|part| line(part, depth + 1)) }
        </details>
    }
}

fn figures(of: &LayerFigures) -> Html {
    let title = format!("{} parameters", of.parameters);
    html! {
        <>
            <span class="number mono shape">{ &of.shape }</span>
            <span class="number" {title}>{ &of.weights }</span>
            <span class="number">{ &of.kept }</span>
        </>
    }
}
