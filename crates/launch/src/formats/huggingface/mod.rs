//! Hugging Face `config.json`.

mod harmless;
mod lacking;
mod read;
mod shape;

pub(crate) use harmless::TABLE as HARMLESS;
pub(crate) use lacking::lacking;
pub(crate) use read::HuggingFace;
