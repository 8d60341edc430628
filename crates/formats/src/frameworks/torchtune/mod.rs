//! torchtune: its settings files, and the recipes that `tune run` starts with them.

mod command;
mod settings;
mod shipped;

pub(crate) use command::Torchtune;
pub use command::is_recipe;
#[cfg(test)]
pub(crate) use settings::TORCHTUNE;
pub use shipped::is_shipped;
