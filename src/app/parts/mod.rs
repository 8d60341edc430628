//! Widgets shared by the views.

mod bar;
mod copy;
mod icon;
mod options;
mod section;
mod table;
mod tag;
mod term;
pub(crate) mod theme;
mod tree;
mod why;
mod width;

pub(crate) use bar::{Piece, bar, key, swatch};
pub(crate) use copy::{copy, copyable};
pub(crate) use icon::Sign;
pub(crate) use options::{choose, options};
pub(crate) use section::{button, details, headed, section};
pub(crate) use table::{head, heads, table, wide, with_remark};
pub(crate) use tag::{Tag, group, tag, text};
pub(crate) use term::named;
pub(crate) use tree::tree;
pub(crate) use why::{card, number};
pub(crate) use width::Width;
