//! The one cell of the map that takes the focus, as a grid with only that cell in the DOM; arrow keys move it.

use shardscope::session::map::{About, Picture, Step, about};
use shardscope::session::{Event, PtrEq, Shown};
use shardscope::topology::Rank;
use web_sys::SvgElement;
use yew::prelude::*;

use crate::app::browser;
use crate::app::context::use_dispatch;

#[derive(Properties, PartialEq)]
pub(super) struct Props {
    pub shown: PtrEq<Shown>,
    pub picture: PtrEq<Picture>,
    pub picked: Option<Rank>,
}

#[component(Cursor)]
pub(super) fn cursor(Props { shown, picture, picked }: &Props) -> Html {
    let dispatch = use_dispatch();
    let node = use_node_ref();
    // Only a move by keys moves the focus; picking a GPU must not steal it.
    let moved = use_mut_ref(|| false);
    let last = shown.plan.layout().world_size.saturating_sub(1);
    let place = use_state_eq(|| 0_u64);
    // A GPU picked by pointer or by its label moves the cursor too.
    {
        let (place, node) = (place.setter(), node.clone());
        use_effect_with(*picked, move |picked| {
            if let Some(rank) = picked {
                place.set(rank.get());
                if let Some(cell) = node.cast::<web_sys::Element>() {
                    bring(&cell);
                }
            }
        });
    }
    // A plan with fewer GPUs may have come in between.
    let at = (*place).min(last);
    {
        let (node, moved) = (node.clone(), moved.clone());
        use_effect_with(at, move |_| {
            if std::mem::take(&mut *moved.borrow_mut())
                && let Some(cell) = node.cast::<SvgElement>()
            {
                let _ = cell.focus();
                bring(&cell);
            }
        });
    }
    let area = picture.geometry.cell(at);
    let (row, column) = picture.geometry.row_and_column(at);
    let label = about(&shown.plan, Rank::new(at)).as_ref().map(spoken).unwrap_or_default();
    let onkeydown = {
        let (picture, place, picks) = (picture.clone(), place.setter(), picked.is_some());
        move |event: KeyboardEvent| {
            let key = event.key();
            let to = match to(&key, browser::has_command(&event)) {
                Some(step) => picture.geometry.step(at, step),
                // A cell is not a button, so both keys are handled here.
                None if matches!(key.as_str(), "Enter" | " ") => at,
                None => return,
            };
            event.prevent_default();
            if to != at {
                *moved.borrow_mut() = true;
                place.set(to);
            }
            // With a GPU picked, arrows go on picking, as in a list.
            if to == at || picks {
                dispatch.emit(Event::Pick(Some(Rank::new(to))).into());
            }
        }
    };
    html! {
        // One row with one cell: a screen reader gets the place from the indices, not from 16,384 elements.
        <g role="row" aria-rowindex={(row + 1).to_string()}>
            <rect
                ref={node}
                class="cursor"
                role="gridcell"
                tabindex="0"
                aria-colindex={(column + 1).to_string()}
                aria-label={label}
                aria-selected={(*picked == Some(Rank::new(at))).to_string()}
                rx={if area.width > 20 { "4" } else { "1" }}
                x={area.x.to_string()}
                y={area.y.to_string()}
                width={area.width.to_string()}
                height={area.height.to_string()}
                {onkeydown}
            />
        </g>
    }
}

/// Brings a cell into view inside the frame of the map.
fn bring(cell: &web_sys::Element) {
    let options = web_sys::ScrollIntoViewOptions::new();
    // Nearest: the map only scrolls if the cell is out of view.
    options.set_block(web_sys::ScrollLogicalPosition::Nearest);
    options.set_inline(web_sys::ScrollLogicalPosition::Nearest);
    cell.scroll_into_view_with_scroll_into_view_options(&options);
}

/// Where a key leads; with Ctrl or Cmd over the `whole` map.
fn to(key: &str, whole: bool) -> Option<Step> {
    Some(match (key, whole) {
        ("ArrowLeft", _) => Step::Left,
        ("ArrowRight", _) => Step::Right,
        ("ArrowUp", _) => Step::Up,
        ("ArrowDown", _) => Step::Down,
        ("Home", true) => Step::First,
        ("End", true) => Step::Last,
        ("Home", false) => Step::RowStart,
        ("End", false) => Step::RowEnd,
        _ => return None,
    })
}

/// What a screen reader announces for a GPU.
fn spoken(about: &About) -> String {
    let mut text = format!("{}, rank {}, stage {}", about.label, about.rank.get(), about.stage);
    for relation in &about.relations {
        text += &format!(", {} group {}", relation.name, relation.index);
    }
    text
}
