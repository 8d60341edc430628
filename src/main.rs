//! The page: mounts the yew application on the static shell of `index.html`.
mod app;

fn main() {
    app::mount();
}
