//! Widgets shared by the views.

mod bar;
mod copy;
mod icon;
mod theme;
mod tree;
mod why;
mod wide;
mod width;

pub(crate) use bar::{Bar, Patterns, Piece, key};
pub(crate) use copy::Copy;
pub(crate) use icon::{Icon, Sign};
pub(crate) use theme::Theme;
pub(crate) use tree::Tree;
pub(crate) use why::{Explaining, Number};
pub(crate) use wide::Wide;
pub(crate) use width::use_width;
