//! The pages that stand beside the main page: static HTML, written from what the engine computes when the site is built.
//!
//! The main page links to them and loads none of them. To add one: write a function that returns a [`Page`] (its body is
//! HTML in the classes of `styles/`), name it in [`pages()`], and add its sheet, if it needs one, to `styles/beside.css`.
//! Scripts and other files of a page lie in `pages/assets/` and in [`assets()`].

pub mod evidence;
mod frame;
pub mod gallery;
pub mod guide;
mod page;

pub use frame::{assets, framed, pages};
pub use page::Page;
