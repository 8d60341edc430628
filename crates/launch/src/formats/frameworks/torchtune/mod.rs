//! torchtune: its settings files, and the recipes that `tune run` starts with them.

mod command;
mod settings;
mod shipped;

pub(in crate::formats) use command::Torchtune;
pub(crate) use command::is_recipe;
#[cfg(test)]
pub(in crate::formats) use settings::TORCHTUNE;
pub(crate) use shipped::is_shipped;
