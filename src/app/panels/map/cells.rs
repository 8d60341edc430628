//! What of the map does not change when a GPU is picked or hovered.

use shardscope::session::PtrEq;
use shardscope::session::map::{Area, Caption, Detail, Picture};
use yew::prelude::*;

#[derive(Properties, PartialEq)]
pub(super) struct Props {
    pub picture: PtrEq<Picture>,
}

/// The nodes and the coloured cells.
#[component(Cells)]
pub(super) fn cells(Props { picture }: &Props) -> Html {
    let hue = if picture.ramp { "r" } else { "c" };
    let rounded = picture.geometry.detail() >= Detail::Number;
    html! {
        <g class={rounded.then_some("rounded")} aria-hidden="true">
            { for picture.nodes.iter().map(node) }
            { for picture.fills.iter().map(|(class, path)| html! {
                <path class={format!("cell {hue}{class}")} d={path.clone()} />
            }) }
        </g>
    }
}

fn node((area, name): &(Area, String)) -> Html {
    html! {
        <>
            <rect
                class="node" rx="6"
                x={area.x.to_string()} y={area.y.to_string()}
                width={area.width.to_string()} height={area.height.to_string()}
            />
            { label("node-name", (area.x + 8, area.y + 17), name) }
        </>
    }
}

/// The texts in the cells, above everything drawn between.
#[component(Captions)]
pub(super) fn captions(Props { picture }: &Props) -> Html {
    html! {
        <g class="captions" aria-hidden="true">{ for picture.captions.iter().map(caption) }</g>
    }
}

fn caption(caption: &Caption) -> Html {
    let (x, y) = caption.area.middle();
    match &caption.label {
        Some(above) => html! {
            <>
                { label("cell-label", (x, y - 3), above) }
                { label("cell-value", (x, y + 13), &caption.value) }
            </>
        },
        None => label("cell-value", (x, y + 4), &caption.value),
    }
}

/// A text at a place.
pub(super) fn label(class: &'static str, (x, y): (u32, u32), text: &str) -> Html {
    html! { <text {class} x={x.to_string()} y={y.to_string()}>{ text }</text> }
}
