//! What the reader sees.
use yew::prelude::*;

/// Takes over the static shell in `#app`.
pub(crate) fn mount() {
    let shell = web_sys::window()
        .and_then(|window| window.document())
        .and_then(|document| document.get_element_by_id("app"));
    if let Some(shell) = shell {
        yew::Renderer::<Page>::with_root(shell).render();
    }
}

#[component]
fn Page() -> Html {
    html! {
        <header>
            <h1>{ "Shardscope" }</h1>
            <p>{ "What a training run takes, from its launch script." }</p>
        </header>
    }
}
