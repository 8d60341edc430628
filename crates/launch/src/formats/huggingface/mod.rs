//! Hugging Face `config.json`.

mod architecture;
mod read;

pub(super) use read::{PLAIN, read};
