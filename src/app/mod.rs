//! What the reader sees: views of a [`shardscope::session::State`], which compute nothing themselves.

mod act;
mod address;
mod desk;
mod dom;
mod embed;
mod files;
mod keys;
mod page;
mod panel;
mod parts;
mod perform;
mod toolbar;
mod views;
mod words;

/// Takes over the static shell in `#app`.
pub(crate) fn mount() {
    if let Some(shell) = dom::element("app") {
        yew::Renderer::<page::Page>::with_root(shell).render();
    }
}
