//! What the reader sees: components over a [`shardscope::session::State`], which compute nothing themselves.
//!
//! [`App`](app::App) owns the one state and its reducer. A detail of the answer is a panel: one file in `panels/` with
//! its component, its words and its step of the tour, and one line in the register there.

mod action;
mod address;
mod answer;
#[allow(clippy::module_inception)]
mod app;
mod beside;
mod browser;
mod context;
mod embed;
mod files;
mod found;
mod header;
mod hooks;
mod input;
mod later;
mod panel_id;
mod panels;
mod place;
mod question;
mod share;
mod state;
mod tour;
mod ui;
mod widgets;
mod words;
mod worker;

pub(crate) use worker::{scope as worker, serve};

/// Whether the reader comes with a link, or was here before: `index.html` has found out.
pub(crate) fn brings_own() -> bool {
    browser::document()
        .and_then(|document| document.document_element())
        .is_some_and(|root| root.class_name().split_whitespace().any(|name| name == "has-own"))
}

/// [`mount`], for a reader who brings a text or a link: once the tables are there that their text may need.
pub(crate) fn mount_with_tables() {
    wasm_bindgen_futures::spawn_local(async {
        later::load().await;
        mount();
    });
}

/// Takes over `#app` with what stands in it: the static shell, and the example's answer as the build wrote it.
pub(crate) fn mount() {
    if let Some(shell) = browser::element("app") {
        yew::Renderer::<app::App>::with_root(shell).render();
    }
}

/// The page as somebody sees it who brings nothing: the example and its answer.
#[cfg(feature = "prerender")]
pub(crate) fn prerendered() -> String {
    let page = yew::LocalServerRenderer::<app::App>::new().hydratable(false);
    futures_executor::block_on(page.render())
}
