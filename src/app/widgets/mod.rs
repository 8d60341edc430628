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

pub(crate) use bar::{MemoryBar, Swatch};
pub(crate) use copy::{CopyButton, Copyable};
pub(crate) use dialog::Dialog;
pub(crate) use icon::{Icon, Sign};
pub(crate) use section::{Options, Section, Stat};
pub(crate) use table::{Wide, head, heads, pair, remark};
pub(crate) use tabs::{Tab, Tabs};
pub(crate) use term::{Named, Term};
pub(crate) use tree::Tree;
pub(crate) use why::{Card, Number};
