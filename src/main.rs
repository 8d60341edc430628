//! The page: mounts the yew application on the static shell of `index.html`.
mod app;
mod crash;

fn main() {
    crash::report_panics();
    app::mount();
}
