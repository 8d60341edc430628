//! Trainers of models of Hugging Face's transformers: one vocabulary, and what differs between them as data.

mod adapters;
mod dialect;
mod place;
mod python;
mod read;
mod vocabulary;
mod words;

pub use dialect::Dialect;
pub(crate) use place::of_words;
pub(crate) use python::read_python;
pub(super) use read::read;
pub(crate) use read::read_words;
