//! Text to be copied. If the clipboard is refused, the user is told, and a field that shows the text is selected.

use gloo::timers::callback::Timeout;
use web_sys::HtmlTextAreaElement;
use yew::prelude::*;

use super::{Sign, icon};
use crate::app::browser;

/// How long a button says that it copied. Unit: millisecond.
const SAID: u32 = 2_500;

/// Whether something was copied a moment ago, and the way to copy.
#[hook]
fn use_copy() -> (Option<bool>, Callback<(String, Option<HtmlTextAreaElement>)>) {
    let said = use_state_eq(|| None);
    // Dropping the last timer ends it: a second press restarts the timer.
    let timer = use_mut_ref(|| None::<Timeout>);
    let tell = said.clone();
    let copy = Callback::from(move |(text, field): (String, Option<HtmlTextAreaElement>)| {
        let (tell, timer) = (tell.clone(), timer.clone());
        browser::copy(&text, move |done| {
            // Selected, so that the user's own Ctrl+C has something to copy.
            if let (false, Some(field)) = (done, field) {
                let _ = field.focus();
                field.select();
            }
            tell.set(Some(done));
            *timer.borrow_mut() = Some(Timeout::new(SAID, move || tell.set(None)));
        });
    });
    (*said, copy)
}

#[derive(Properties, PartialEq)]
pub(crate) struct ButtonProps {
    pub label: &'static str,
    /// What is copied; computed when the button is pressed.
    pub text: Callback<(), String>,
    #[prop_or("button quiet")]
    pub class: &'static str,
}

/// A button that copies.
#[component(CopyButton)]
pub(crate) fn copy_button(props: &ButtonProps) -> Html {
    let (said, copy) = use_copy();
    let label = match said {
        Some(true) => "Copied",
        Some(false) => "Clipboard blocked",
        None => props.label,
    };
    let text = props.text.clone();
    html! {
        <button type="button" class={props.class} onclick={move |_| copy.emit((text.emit(()), None))}>
            { icon(Sign::Copy) }
            <span aria-live="polite">{ label }</span>
        </button>
    }
}

#[derive(Properties, PartialEq)]
pub(crate) struct Props {
    pub id: &'static str,
    pub label: &'static str,
    pub text: String,
    #[prop_or(1)]
    pub lines: u32,
}

/// A field that shows a full text, and a button that copies it.
#[component(Copyable)]
pub(crate) fn copyable(props: &Props) -> Html {
    let (said, copy) = use_copy();
    let field = use_node_ref();
    let status = match said {
        Some(true) => "Copied",
        Some(false) => "Clipboard blocked, press Ctrl+C",
        None => "",
    };
    let press = {
        let (text, field) = (props.text.clone(), field.clone());
        move |_| copy.emit((text.clone(), field.cast()))
    };
    html! {
        <div class="copyable">
            <textarea
                ref={field}
                id={props.id}
                class="field mono"
                readonly=true
                rows={props.lines.to_string()}
                wrap={if props.lines > 1 { "soft" } else { "off" }}
                spellcheck="false"
                aria-label={props.label}
                value={props.text.clone()}
            />
            <button type="button" class="button" onclick={press}>
                { icon(if said == Some(true) { Sign::Good } else { Sign::Copy }) }
                { props.label }
            </button>
            <span class="said small" role="status">{ status }</span>
        </div>
    }
}
