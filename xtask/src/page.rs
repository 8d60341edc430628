//! The release page in `dist/`: built by Trunk if something changed, and served.
use std::fs;
use std::time::Instant;

use anyhow::{Context, Result};

use crate::fingerprint::{self, Fingerprint};
use crate::install::{self, For};
use crate::process::{command, note, root, run, say};
use crate::site::{Server, Site};

/// Number of ports tried, starting with the requested one.
const TRIES: u16 = 50;

/// Builds the release page, regardless of what is in `dist/`.
pub fn build() -> Result<()> {
    let dist = root().join("dist");
    // a build that fails leaves no older page behind
    if dist.exists() {
        fs::remove_dir_all(&dist).context("the older dist/ cannot be removed")?;
    }
    let started = Instant::now();
    // Before the build: changes during the build then count as newer than the build.
    let inputs = fingerprint::inputs()?;
    // Trunk 0.21 cannot minify what wasm-bindgen writes and warns about it every time; that only costs a kilobyte, so
    // its log is limited to errors.
    run(command("trunk").args(["build", "--release", "--log", "error"]))?;
    Fingerprint { inputs, outputs: fingerprint::of_folder(&dist)? }.save()?;
    note(&format!("built dist/ in {} s", started.elapsed().as_secs()));
    Ok(())
}

/// The same, unless what is in `dist/` was built from the same sources by the same tools.
pub fn build_if_changed() -> Result<()> {
    install::install(For::Page)?;
    if Fingerprint::saved().is_some_and(|last| last.holds()) {
        note("nothing has changed since dist/ was built");
        return Ok(());
    }
    say("building the page (the first time takes a few minutes)");
    build().context("the page could not be built")
}

/// Serves the release page until the process is ended.
pub fn serve(port: u16) -> Result<()> {
    build_if_changed()?;
    let site = Site { folder: root().join("dist"), path: "/".to_owned(), cross_origin: false };
    let server = Server::bind(site, port, TRIES)?;
    println!("\n    Shardscope is at  {}   (Ctrl-C stops it)\n", server.url());
    server.run()
}

/// An unoptimised page that Trunk rebuilds and reloads at every change.
pub fn serve_dev(port: u16) -> Result<()> {
    install::install(For::Page)?;
    say(&format!("building the page; Trunk says below when it is up at http://127.0.0.1:{port}/"));
    let port = port.to_string();
    // In a separate directory: `dist/` is the release page, whose fingerprint is saved.
    run(command("trunk").args(["serve", "--dist", "target/dev-page", "--port", &port]))
}
