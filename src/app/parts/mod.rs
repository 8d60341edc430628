//! Widgets shared by the views. Most are plain functions: a component costs kilobytes.

mod bar;
mod copy;
mod copyable;
mod dialog;
mod icon;
mod table;
mod theme;
mod tree;
mod why;
mod width;

pub(crate) use bar::{Piece, bar, key};
pub(crate) use copy::Copy;
pub(crate) use copyable::Copyable;
pub(crate) use dialog::Dialog;
pub(crate) use icon::{Sign, icon};
pub(crate) use table::{Cell, Row, head, row, table, wide};
pub(crate) use theme::Theme;
pub(crate) use tree::tree;
pub(crate) use why::{card, number};
pub(crate) use width::use_width;
