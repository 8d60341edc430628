//! The one cell of the map that takes the focus, as a grid whose other cells are not there: arrows move it.

use shardscope::session::map::{About, Geometry, Step};
use web_sys::SvgElement;
use yew::prelude::*;

#[derive(Properties, PartialEq)]
pub(crate) struct Props {
    pub geometry: Geometry,
    pub at: u64,
    /// What a screen reader says of it.
    pub label: AttrValue,
    pub picked: bool,
    /// Whether the map had the focus when the cursor moved, which the new cell takes over.
    pub focused: bool,
    pub onmove: Callback<u64>,
    pub onpick: Callback<u64>,
}

#[component]
pub(crate) fn Cursor(props: &Props) -> Html {
    let area = props.geometry.cell(props.at);
    let (row, column) = props.geometry.row_and_column(props.at);
    let cell = use_node_ref();
    {
        let cell = cell.clone();
        use_effect_with((props.at, props.focused), move |(_, focused)| {
            if let (true, Some(cell)) = (*focused, cell.cast::<SvgElement>()) {
                let _ = cell.focus();
            }
        });
    }
    let onkeydown = {
        let (geometry, at) = (props.geometry, props.at);
        let (onmove, onpick) = (props.onmove.clone(), props.onpick.clone());
        move |event: KeyboardEvent| {
            let whole = event.ctrl_key() || event.meta_key();
            let step = match event.key().as_str() {
                "ArrowLeft" => Step::Left,
                "ArrowRight" => Step::Right,
                "ArrowUp" => Step::Up,
                "ArrowDown" => Step::Down,
                "Home" if whole => Step::First,
                "End" if whole => Step::Last,
                "Home" => Step::RowStart,
                "End" => Step::RowEnd,
                "Enter" | " " => {
                    event.prevent_default();
                    return onpick.emit(at);
                }
                _ => return,
            };
            event.prevent_default();
            onmove.emit(geometry.step(at, step));
        }
    };
    html! {
        <g role="row" aria-rowindex={(row + 1).to_string()}>
            <rect ref={cell} key={props.at.to_string()} class="cursor" role="gridcell" tabindex="0"
                aria-colindex={(column + 1).to_string()} aria-label={props.label.clone()}
                aria-selected={if props.picked { "true" } else { "false" }}
                x={area.x.to_string()} y={area.y.to_string()} rx={if area.width > 20 { "4" } else { "1" }}
                width={area.width.to_string()} height={area.height.to_string()} {onkeydown} />
        </g>
    }
}

/// What a screen reader says of a GPU.
pub(crate) fn spoken(about: &About) -> String {
    let mut text = format!("{}, rank {}, stage {}", about.label, about.rank.get(), about.stage);
    for relation in &about.relations {
        text.push_str(&format!(", {} group {}", relation.name, relation.index));
    }
    text
}
