//! The page: mounts the yew application on the static shell of `index.html`. In a worker the same program searches. Built for
//! the machine that builds the page, with the feature `prerender`, it writes the page as HTML, which the reader sees while the
//! engine is still on its way.
#![cfg_attr(feature = "prerender", allow(dead_code, reason = "there it only draws, once"))]
mod app;
mod crash;

#[cfg(not(feature = "prerender"))]
fn main() {
    crash::report_panics();
    match app::worker() {
        Some(scope) => app::serve(&scope),
        // `index.html` knows it before the engine does: whoever brings nothing is not kept waiting.
        None if app::brings_own() => app::mount_with_tables(),
        None => app::mount(),
    }
}

#[cfg(feature = "prerender")]
fn main() {
    println!("{}", app::prerendered());
}
