//! A button that copies text and says whether it did.

use gloo::timers::callback::Timeout;
use yew::prelude::*;

use super::{Sign, icon};
use crate::app::dom;

/// How long the button says that it copied. Unit: millisecond.
const SAID: u32 = 2_000;

#[derive(Properties, PartialEq)]
pub(crate) struct Props {
    /// What is copied, worked out only when asked.
    pub text: Callback<(), String>,
    #[prop_or(AttrValue::Static("Copy"))]
    pub label: AttrValue,
}

#[component]
pub(crate) fn Copy(props: &Props) -> Html {
    let done = use_state(|| None::<bool>);
    let onclick = {
        let (done, text) = (done.clone(), props.text.clone());
        move |_| {
            let done = done.clone();
            dom::copy(&text.emit(()), move |copied| {
                done.set(Some(copied));
                let done = done.clone();
                Timeout::new(SAID, move || done.set(None)).forget();
            });
        }
    };
    let label = match *done {
        Some(true) => "Copied".into(),
        Some(false) => "Not allowed here".into(),
        None => props.label.clone(),
    };
    html! {
        <button type="button" class="button quiet" {onclick}>{ icon(Sign::Copy) }<span aria-live="polite">{ label }</span></button>
    }
}
