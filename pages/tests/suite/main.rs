//! Tests of the pages besides the main page, in one program, so that the pages are computed only once.
#![allow(clippy::expect_used)]

mod frame;
mod guide;
mod links;

use std::sync::OnceLock;

/// Every page as generated, by file.
fn written() -> &'static [(&'static str, String)] {
    static WRITTEN: OnceLock<Vec<(&str, String)>> = OnceLock::new();
    WRITTEN.get_or_init(|| pages::pages().iter().map(|page| (page.file, pages::framed(page))).collect())
}

/// The page called `file`.
fn page_of(file: &str) -> &'static str {
    let page = written().iter().find(|(name, _)| *name == file);
    page.map(|(_, html)| html.as_str()).expect("a page")
}
