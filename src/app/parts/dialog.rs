//! A sheet over the page; closed by Escape, by its button and by pressing beside it.

use web_sys::{HtmlDialogElement, MouseEvent};
use yew::prelude::*;

use super::{Sign, icon};

#[derive(Properties, PartialEq)]
pub(crate) struct Props {
    pub title: AttrValue,
    pub id: AttrValue,
    pub onclose: Callback<()>,
    pub children: Html,
}

/// Shown as long as it is there.
#[component]
pub(crate) fn Dialog(props: &Props) -> Html {
    let node = use_node_ref();
    {
        let node = node.clone();
        use_effect_with((), move |()| {
            let dialog = node.cast::<HtmlDialogElement>();
            if let Some(dialog) = &dialog {
                let _ = dialog.show_modal();
            }
            move || {
                if let Some(dialog) = dialog {
                    dialog.close();
                }
            }
        });
    }
    let close = {
        let node = node.clone();
        Callback::from(move |()| {
            if let Some(dialog) = node.cast::<HtmlDialogElement>() {
                dialog.close();
            }
        })
    };
    let onclick = {
        let (node, close) = (node.clone(), close.clone());
        move |event: MouseEvent| {
            let beside = event.target().map(wasm_bindgen::JsValue::from)
                == node.get().map(wasm_bindgen::JsValue::from);
            if beside {
                close.emit(());
            }
        }
    };
    let title_id = format!("{}-title", props.id);
    html! {
        <dialog ref={node} id={props.id.clone()} class="sheet-dialog" aria-labelledby={title_id.clone()} {onclick}
            onclose={props.onclose.reform(|_| ())}>
            <div class="dialog-body">
                <header>
                    <h2 id={title_id}>{ &props.title }</h2>
                    <button type="button" class="button quiet" aria-label="Close" onclick={close.reform(|_| ())}>{ icon(Sign::Close) }</button>
                </header>
                { props.children.clone() }
            </div>
        </dialog>
    }
}
