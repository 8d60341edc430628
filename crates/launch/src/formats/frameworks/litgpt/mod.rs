//! litgpt: its settings files, and the commands that take them.

mod command;
mod settings;

pub(in crate::formats) use command::Litgpt;
pub(crate) use command::{is_program, program};
#[cfg(test)]
pub(in crate::formats) use settings::LITGPT;
