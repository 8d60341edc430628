//! litgpt: its settings files, and the commands that take them.

mod command;
mod settings;

pub(crate) use command::Litgpt;
pub(super) use command::is_program;
pub use command::program;
#[cfg(test)]
pub(crate) use settings::LITGPT;
