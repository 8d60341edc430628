//! A sheet over the page; closed by Escape, by its button and by clicking outside.

use wasm_bindgen::JsCast;
use web_sys::{Element, HtmlDialogElement};
use yew::prelude::*;

use super::{Sign, icon};

#[derive(Properties, PartialEq)]
pub(crate) struct Props {
    pub id: &'static str,
    pub title: &'static str,
    pub closed: Callback<()>,
    pub children: Html,
}

/// The sheet, open as long as it is mounted.
#[component(Dialog)]
pub(crate) fn dialog(props: &Props) -> Html {
    let node = use_node_ref();
    use_effect_with(node.clone(), |node| {
        if let Some(dialog) = node.cast::<HtmlDialogElement>() {
            // `show_modal` keeps the rest of the page out of reach, which the attribute `open` would not do.
            let _ = dialog.show_modal();
        }
    });
    let close = {
        let node = node.clone();
        move || {
            if let Some(dialog) = node.cast::<HtmlDialogElement>() {
                dialog.close();
            }
        }
    };
    // A press hits the dialog itself only outside of its body.
    let beside = {
        let (node, close) = (node.clone(), close.clone());
        move |event: MouseEvent| {
            let target = event.target().and_then(|target| target.dyn_into::<Element>().ok());
            // Presses inside have an element of the body as their target.
            if target.is_some() && target == node.cast::<Element>() {
                close();
            }
        }
    };
    let closed = props.closed.clone();
    let title_id = format!("{}-title", props.id);
    html! {
        <dialog
            ref={node}
            id={props.id}
            class="sheet-dialog"
            aria-labelledby={title_id.clone()}
            onclick={beside}
            // Escape closes the dialog without any button.
            onclose={move |_| closed.emit(())}
        >
            <div class="dialog-body">
                <header>
                    <h2 id={title_id}>{ props.title }</h2>
                    <button type="button" class="button quiet" aria-label="Close" onclick={move |_| close()}>
                        { icon(Sign::Close) }
                    </button>
                </header>
                { props.children.clone() }
            </div>
        </dialog>
    }
}
