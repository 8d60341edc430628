//! Widgets shared by the panels.

mod bar;
mod copy;
mod dialog;
mod icon;
mod section;
mod table;
mod tabs;
mod term;
mod tree;
mod why;

pub(crate) use bar::{memory_bar, swatch, swatch_of};
pub(crate) use copy::{CopyButton, Copyable};
pub(crate) use dialog::Dialog;
pub(crate) use icon::{Sign, icon};
pub(crate) use section::{Options, section, stat};
pub(crate) use table::{head, heads, pair, remark, wide};
pub(crate) use tabs::{Tab, Tabs};
pub(crate) use term::{Term, named};
pub(crate) use tree::tree;
pub(crate) use why::{Card, Number};
