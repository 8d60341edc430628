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
mod best_change;
mod browser;
mod context;
mod embed;
mod files;
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

#[cfg(feature = "prerender")]
pub(crate) use crate::tables::provide as provide_tables;

/// Takes over `#app` with what stands in it, the static shell and the example's answer as the build wrote it, once the engine has
/// its tables.
#[cfg(not(feature = "prerender"))]
pub(crate) fn mount() {
    wasm_bindgen_futures::spawn_local(async {
        if !later::load().await {
            // `index.html` tells the reader.
            wasm_bindgen::throw_str("the engine's tables did not arrive");
        }
        if let Some(shell) = browser::element("app") {
            yew::Renderer::<app::App>::with_root(shell).render();
        }
    });
}

/// The page as somebody sees it who brings nothing: the example and its answer.
#[cfg(feature = "prerender")]
pub(crate) fn prerendered() -> String {
    let page = yew::LocalServerRenderer::<app::App>::new().hydratable(false);
    futures_executor::block_on(page.render())
}
