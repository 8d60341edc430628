//! Widgets shared by the views.

mod icon;
mod theme;

pub(crate) use icon::{Icon, Sign};
pub(crate) use theme::Theme;
