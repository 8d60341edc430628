//! What the reader sees: views of a [`shardscope::session::State`], which compute nothing themselves.

mod address;
mod desk;
mod dom;
mod keys;
mod page;
mod parts;
mod store;
mod toolbar;
mod views;

/// Takes over the static shell in `#app`.
pub(crate) fn mount() {
    if let Some(shell) = dom::document().and_then(|document| document.get_element_by_id("app")) {
        yew::Renderer::<page::Page>::with_root(shell).render();
    }
}
