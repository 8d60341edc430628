//! The definition of a page besides the main page.

use maud::Markup;

/// One page besides the main page.
pub struct Page {
    /// Its file in the site.
    pub file: &'static str,
    /// Text of links to it.
    pub name: &'static str,
    /// One sentence, for search engines and below its name.
    pub about: &'static str,
    /// Files of [`crate::assets()`] that it runs as modules.
    pub scripts: &'static [&'static str],
    /// Its content: the body of `<main>`.
    pub body: fn() -> Markup,
}
