//! One file per panel.

mod communication;
mod diagnostics;
mod layers;
mod map;
mod memory;
mod questions;
mod script;
mod settings;
mod stages;
mod time;
mod tool;
mod utilisation;
mod verdict;

pub(crate) use communication::Communication;
pub(crate) use diagnostics::Diagnostics;
pub(crate) use layers::Layers;
pub(crate) use map::Map;
pub(crate) use memory::Memory;
pub(crate) use questions::Questions;
pub(crate) use script::{Script, show_place};
pub(crate) use settings::Settings;
pub(crate) use stages::StageBars;
pub(crate) use time::Time;
pub(crate) use tool::Tool;
pub(crate) use utilisation::Utilisation;
pub(crate) use verdict::Verdict;
