//! The map of the cluster: every GPU, its colour, and who it works with.

mod about;
mod cells;
mod controls;
mod cursor;
mod table;
mod view;

pub(crate) use controls::{find, painted};
pub(crate) use cursor::{is_move, moved};
pub(crate) use view::{gpu_under, map, picture};
