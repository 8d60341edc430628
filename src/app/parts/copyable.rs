//! Text to be copied: a field that shows it whole, and a button; where the clipboard is refused, the field is selected.

use gloo::timers::callback::Timeout;
use web_sys::HtmlTextAreaElement;
use yew::prelude::*;

use super::{Sign, icon};
use crate::app::dom;

/// How long the button says that it copied. Unit: millisecond.
const SAID: u32 = 2_500;

#[derive(Properties, PartialEq)]
pub(crate) struct Props {
    pub id: AttrValue,
    pub text: AttrValue,
    /// What stands on the button.
    pub label: AttrValue,
    /// Lines of the field.
    #[prop_or(1)]
    pub lines: u32,
}

#[component]
pub(crate) fn Copyable(props: &Props) -> Html {
    let field = use_node_ref();
    let done = use_state(|| None::<bool>);
    let onclick = {
        let (field, done, text) = (field.clone(), done.clone(), props.text.clone());
        move |_| {
            let (field, done) = (field.clone(), done.clone());
            dom::copy(&text, move |copied| {
                done.set(Some(copied));
                if copied {
                    let done = done.clone();
                    Timeout::new(SAID, move || done.set(None)).forget();
                } else if let Some(field) = field.cast::<HtmlTextAreaElement>() {
                    let _ = field.focus();
                    field.select();
                }
            });
        }
    };
    let said = match *done {
        Some(true) => "Copied",
        Some(false) => "Selected: press Ctrl+C",
        None => "",
    };
    let sign = if *done == Some(true) { Sign::Good } else { Sign::Copy };
    html! {
        <div class="copyable">
            <textarea ref={field} id={props.id.clone()} class="field mono" readonly=true rows={props.lines.to_string()} wrap={if props.lines > 1 { "soft" } else { "off" }}
                spellcheck="false" aria-label={props.label.clone()} value={props.text.to_string()} />
            <button type="button" class="button" {onclick}>{ icon(sign) }{ &props.label }</button>
            <span class="said small" role="status">{ said }</span>
        </div>
    }
}
