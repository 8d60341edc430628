//! The pages of the site and the files that they load.

use std::borrow::Cow;

use crate::frame::document;
use crate::page::Page;
use crate::{evidence, gallery, guide};
use shardscope::session::given::{GIVEN, given};

/// Every page, in the order of the links.
#[must_use]
pub fn pages() -> Vec<Page> {
    let mut all = Vec::from(guide::pages());
    all.push(evidence::page());
    all.push(gallery::page());
    all
}

/// The files that the pages load, except `pages.css`, which the build assembles; and those that the main page's
/// engine loads.
#[must_use]
pub fn assets() -> Vec<(&'static str, Cow<'static, str>)> {
    vec![
        ("icon.svg", include_str!("../../assets/icon.svg").into()),
        ("evidence.js", include_str!("../assets/evidence.js").into()),
        ("tables.txt", tables().into()),
        ("readers.txt", reader_tables().into()),
    ]
}

/// The texts of the engine's tables by name, which the main page loads next to its program: all but those of readers.
fn tables() -> String {
    let given = given();
    let of_readers: Vec<&str> = shardscope::reader_tables().map(|table| table.name()).collect();
    let texts = shardscope::tables()
        .filter(|table| !of_readers.contains(&table.name()))
        .map(|table| (table.name(), table.text()));
    shardscope::joined(texts.chain([(GIVEN, given.as_str())]))
}

/// The other tables, which the program that reads texts loads in addition.
fn reader_tables() -> String {
    shardscope::joined(shardscope::reader_tables().map(|table| (table.name(), table.text())))
}

/// `page` as a complete document.
#[must_use]
pub fn framed(page: &Page) -> String {
    document(&pages(), page.file, page.name, page.about, page.scripts, &(page.body)())
}
