//! Trainers of models of Hugging Face's transformers: one vocabulary, and what differs between them as data.

mod adapters;
mod authors;
mod checkpoint;
mod cookbook;
mod dialect;
mod eight_bit;
mod evaluation;
mod format;
mod fused_head;
mod grouped;
mod kernels;
mod llava;
mod objective;
mod offloading;
mod oumi;
mod place;
mod python;
mod qwen_vl;
mod read;
mod rollouts;
mod spread;
mod unsloth;
mod unsloth_compiled;
mod unsloth_rollouts;
mod vision;
mod vocabulary;
pub(super) mod words;

pub(crate) use dialect::Dialect;
pub(crate) use format::Trainer;
pub(crate) use objective::turn_dropout_off;
pub(crate) use oumi::Oumi;
pub(crate) use python::read_started;
pub(in crate::formats) use read::read_scalars;
pub(crate) use spread::open_stage;
pub(super) use spread::{left_to_file, spread};
pub(crate) use vocabulary::TABLE as VOCABULARY;
