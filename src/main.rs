//! The page: mounts the yew application on the static shell of `index.html`. Searches and questions are a separate
//! program (src/worker/main.rs). Built natively with the feature `prerender`, it writes the page as HTML, which the
//! user sees while the engine is still loading.
#![cfg_attr(feature = "prerender", allow(dead_code, reason = "there it only draws, once"))]
mod app;
mod crash;
mod soon;
mod tables;

#[cfg(not(feature = "prerender"))]
fn main() {
    crash::report_panics();
    app::mount();
}

#[cfg(feature = "prerender")]
fn main() {
    // The build names the file of the engine's tables.
    let tables = std::env::args().nth(1).and_then(|file| std::fs::read(file).ok());
    assert!(tables.is_some_and(|tables| app::provide_tables(&tables)), "the engine's tables cannot be read");
    println!("{}", app::prerendered());
}
