//! Hugging Face `config.json`.

mod harmless;
mod lacking;
mod read;
mod shape;

pub use harmless::TABLE as HARMLESS;
pub(crate) use lacking::lacking;
pub use read::HuggingFace;
