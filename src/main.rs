//! The page: mounts the yew application on the static shell of `index.html`. In a worker the same program searches.
mod app;
mod crash;

fn main() {
    crash::report_panics();
    match app::worker() {
        Some(scope) => app::serve(&scope),
        None => app::mount(),
    }
}
