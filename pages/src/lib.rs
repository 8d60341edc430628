//! The pages besides the main page: static HTML, generated from the engine's results when the site is built.
//!
//! The main page links to them and loads none of them. To add one: write a function that returns a [`Page`] (its body
//! is HTML in the classes of `styles/`), add it to [`pages()`], and import its style sheet, if it needs one, in
//! `styles/beside.css`. Scripts and other files of a page belong in `pages/assets/` and in [`assets()`].

pub mod evidence;
mod frame;
pub mod gallery;
pub mod guide;
mod page;
mod site;

pub use page::Page;
pub use site::{assets, framed, pages};
