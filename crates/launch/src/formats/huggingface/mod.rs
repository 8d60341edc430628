//! Hugging Face `config.json`.

mod harmless;
mod lacking;
mod read;
mod shape;

pub(crate) use lacking::lacking;
pub(super) use read::read;
pub(super) use shape::PLAIN;
