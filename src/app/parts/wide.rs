//! A region that scrolls sideways when it must, reachable by keyboard.

use yew::prelude::*;

#[derive(Properties, PartialEq)]
pub(crate) struct Props {
    /// What it holds, for screen readers.
    pub label: AttrValue,
    pub children: Html,
}

#[component]
pub(crate) fn Wide(props: &Props) -> Html {
    html! { <div class="wide" tabindex="0" role="region" aria-label={props.label.clone()}>{ props.children.clone() }</div> }
}
