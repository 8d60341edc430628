//! What of the map does not change when a GPU is picked.

use shardscope::session::Held;
use shardscope::session::map::{Area, Caption, Detail, Picture};
use yew::prelude::*;

#[derive(Properties)]
pub(crate) struct Props {
    pub picture: Held<Picture>,
    /// Draws a part of it; the same for the life of the component.
    pub draw: fn(&Picture) -> Html,
}

impl PartialEq for Props {
    fn eq(&self, other: &Self) -> bool {
        self.picture == other.picture
    }
}

/// A part of the picture, drawn anew only with another picture.
#[component]
pub(crate) fn Drawn(props: &Props) -> Html {
    (props.draw)(&props.picture)
}

/// The nodes and the coloured cells.
pub(crate) fn cells(picture: &Picture) -> Html {
    let hue = if picture.ramp { "r" } else { "c" };
    let rounded = (picture.geometry.detail() >= Detail::Number).then_some("rounded");
    html! {
        <g aria-hidden="true" class={rounded}>
            { for picture.nodes.iter().map(node) }
            { for picture.fills.iter().map(|(class, path)| html! { <path class={format!("cell {hue}{class}")} d={path.clone()} /> }) }
        </g>
    }
}

/// The texts in the cells, above everything drawn between.
pub(crate) fn captions(picture: &Picture) -> Html {
    html! { <g aria-hidden="true" class="captions">{ for picture.captions.iter().map(caption) }</g> }
}

fn node((area, name): &(Area, String)) -> Html {
    html! {
        <>
            <rect class="node" x={area.x.to_string()} y={area.y.to_string()} rx="6"
                width={area.width.to_string()} height={area.height.to_string()} />
            <text class="node-name" x={(area.x + 8).to_string()} y={(area.y + 17).to_string()}>{ name }</text>
        </>
    }
}

fn caption(caption: &Caption) -> Html {
    let (x, y) = caption.area.middle();
    match &caption.label {
        Some(label) => html! {
            <>
                <text class="cell-label" x={x.to_string()} y={(y - 3).to_string()}>{ label }</text>
                <text class="cell-value" x={x.to_string()} y={(y + 13).to_string()}>{ &caption.value }</text>
            </>
        },
        None => {
            html! { <text class="cell-value" x={x.to_string()} y={(y + 4).to_string()}>{ &caption.value }</text> }
        }
    }
}
