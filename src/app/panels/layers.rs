//! The layers of the unsharded model next to what one GPU holds of each.

use shardscope::session::{LayerFigures, LayerLine, PtrEq, Shown, layer_line};
use yew::prelude::*;

use super::panel::Panel;
use crate::app::panel_id::PanelId;
use crate::app::widgets::{Term, section, wide};

pub(super) const PANEL: Panel =
    Panel { id: PanelId::Layers, tab: Some("Layers"), view: |shown| layers(&shown), story: None };

/// Deepest level that the style sheet indents.
const DEEPEST: usize = 4;
/// Column titles for the unsharded model, repeated for one GPU.
const FIGURES: [&str; 6] = ["shape", "weights", "saved", "shape", "weights", "saved"];

fn layers(shown: &PtrEq<Shown>) -> Html {
    // No GPU holds all of a pipeline, so what one holds is shown for the parts.
    let mut root = layer_line(&shown.report.memory.layers);
    if shown.plan.layout().pipeline > 1 {
        root.sharded = LayerFigures { shape: "over all stages".to_owned(), ..LayerFigures::default() };
    }
    let about = html! {
        <>
            { "The whole model next to what one GPU holds of it: weights, and " }
            <Term name="activations">{ "activations saved" }</Term>{ " for the backward pass of one " }
            <Term name="micro-batch" />{ "." }
        </>
    };
    section(
        "layers",
        "",
        "Layers",
        about,
        html! { <>{ wide("Table of the layers", html! { <div class="layers">
            <div class="layer head" aria-hidden="true">
                <span></span>
                <span class="span">{ "whole model" }</span>
                <span class="span">{ "one GPU" }</span>
            </div>
            <div class="layer head">
                <span>{ "Part" }</span>
                { for FIGURES.iter().map(|name| html! { <span class="number">{ *name }</span> }) }
            </div>
            { line(&root, 0) }
        </div> }) }</> },
    )
}

fn line(of: &LayerLine, depth: usize) -> Html {
    let name = if of.times > 1 { format!("{} × {}, each", of.name, of.times) } else { of.name.to_owned() };
    let inside = html! {
        <>
            <span class={format!("layer-name depth-{}", depth.min(DEEPEST))}>{ name }</span>
            { figures(&of.whole) }
            { figures(&of.sharded) }
        </>
    };
    if of.parts.is_empty() {
        return html! { <div class="layer">{ inside }</div> };
    }
    html! {
        // Open only at the root: a model of a hundred layers has thousands of lines.
        <details open={depth < 1}>
            <summary class="layer">{ inside }</summary>
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
