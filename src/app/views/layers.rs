//! The layers of the whole model beside what one GPU holds of each.

use shardscope::session::{LayerFigures, LayerLine, layer_line};
use yew::prelude::*;

use crate::app::desk::Desk;
use crate::app::parts::wide;

pub(crate) fn layers(desk: &Desk) -> Html {
    let root = layer_line(&desk.shown.report.memory.layers);
    let tree = html! {
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
    };
    html! {
        <section class="panel" id="layers" aria-labelledby="layers-title">
            <header>
                <h2 id="layers-title">{ "Layers" }</h2>
                <p>{ "The whole model beside one GPU that holds the part: weights, and what is kept of one micro-batch for the backward pass." }</p>
            </header>
            { wide("Table of the layers", tree) }
        </section>
    }
}

fn line(of: &LayerLine, depth: usize) -> Html {
    let name = if of.times > 1 { format!("{} × {}", of.name, of.times) } else { of.name.to_owned() };
    let cells = html! {
        <><span class={format!("layer-name depth-{depth}")}>{ name }</span>{ figures(&of.whole) }{ figures(&of.sharded) }</>
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
    html! {
        <>
            <span class="number mono shape">{ &of.shape }</span>
            <span class="number" title={format!("{} parameters", of.parameters)}>{ &of.weights }</span>
            <span class="number">{ &of.kept }</span>
        </>
    }
}
