//! What a page beside the main page is.

use maud::Markup;

/// One page beside the main page.
pub struct Page {
    /// Its file in the site.
    pub file: &'static str,
    /// Text of links to it.
    pub name: &'static str,
    /// One sentence, for those who look for it and under its name.
    pub about: &'static str,
    /// Files of [`crate::assets()`] that it runs as modules.
    pub scripts: &'static [&'static str],
    /// Its content: what stands in `<main>`.
    pub body: fn() -> Markup,
}
