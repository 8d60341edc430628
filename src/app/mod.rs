//! What the user sees: components over a [`shardscope::session::State`], which compute nothing themselves.
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
mod given_files;
mod header;
mod hooks;
mod input;
mod later;
mod measuring;
mod own_files;
mod panel_id;
mod panels;
mod patched;
mod place;
mod question;
mod reader;
mod share;
mod state;
mod tour;
mod ui;
mod widgets;
mod words;

use std::rc::Rc;

#[cfg(not(feature = "prerender"))]
use shardscope::session::texts::{provide, wanted};
#[cfg(not(feature = "prerender"))]
use state::AppState;

#[cfg(feature = "prerender")]
pub(crate) use crate::tables::provide as provide_tables;

/// Takes over `#app` with its content, the static shell and the example's answer as the build wrote it, once the
/// engine has its tables.
#[cfg(not(feature = "prerender"))]
pub(crate) fn mount() {
    wasm_bindgen_futures::spawn_local(async {
        if !later::load().await {
            // Thrown as an error of the program; `index.html` catches it and tells the user what to do.
            wasm_bindgen::throw_str("the engine's tables could not be loaded");
        }
        let Some(first) = first().await else { return };
        if let Some(shell) = browser::element("app") {
            yew::Renderer::<app::App>::with_root_and_props(shell, app::Props { first }).render();
        }
    });
}

/// The initial state, once all of its texts are read; `None` if they could not be, in which case the user is told.
#[cfg(not(feature = "prerender"))]
async fn first() -> Option<Rc<AppState>> {
    // Several rounds: the current text and a pinned one are read one after the other, each when an answer needs it.
    loop {
        let first = address::first();
        let Some(task) = wanted() else { return Some(Rc::new(first)) };
        match reader::ask(&task).await {
            reader::Heard::Said(reply) if reply.is_texts() => {
                provide(&task, reply);
            }
            // `Broken` has shown its own message.
            reader::Heard::Broken => return None,
            reader::Heard::Said(_) | reader::Heard::Superseded | reader::Heard::Lost => {
                // `index.html` tells the user.
                wasm_bindgen::throw_str("the script reader could not be loaded")
            }
        }
    }
}

/// The page as seen without any input: the example and its answer.
#[cfg(feature = "prerender")]
pub(crate) fn prerendered() -> String {
    let first = app::Props { first: Rc::new(address::first()) };
    // Not to be hydrated: the page replaces what the build wrote, so no marks of yew are needed.
    let page = yew::LocalServerRenderer::<app::App>::with_props(first).hydratable(false);
    futures_executor::block_on(page.render())
}
