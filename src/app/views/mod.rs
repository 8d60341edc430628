//! One file per panel. Those that only show a plan are functions of the [`Desk`](super::desk::Desk).

mod advice;
mod communication;
mod diagnostics;
mod knobs;
mod layers;
mod map;
mod memory;
mod questions;
mod schedule;
mod script;
mod search;
mod settings;
mod stages;
mod time;
mod tool;
mod utilisation;
mod verdict;

pub(crate) use advice::advice;
pub(crate) use communication::communication;
pub(crate) use layers::layers;
pub(crate) use map::Map;
pub(crate) use memory::memory;
pub(crate) use questions::questions;
pub(crate) use schedule::schedule;
pub(crate) use script::{Script, show_place};
pub(crate) use search::Search;
pub(crate) use settings::Settings;
pub(crate) use time::time;
pub(crate) use tool::tool;
pub(crate) use utilisation::utilisation;
pub(crate) use verdict::verdict;
