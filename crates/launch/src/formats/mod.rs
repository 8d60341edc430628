//! Launch formats: one [`Reader`] each, named in the register.

mod accelerate;
mod aws_fsdp;
mod bases;
mod deepspeed;
mod dotted;
mod flags;
mod format;
mod frameworks;
mod huggingface;
mod kubernetes;
pub(crate) mod launcher;
mod leaves;
mod llama_like;
mod merge;
mod models_by_file;
mod names;
mod nanotron;
pub(crate) mod nemo;
mod neox;
#[cfg(test)]
mod options_of_trainers;
mod primus;
mod reader;
pub(crate) mod recipes;
mod register;
pub(crate) mod releases;
mod rl;
mod scalars;
mod signs;
mod skypilot;
mod titan;
mod trainer;
mod workload;

pub(super) use accelerate::{Accelerate, read_launcher};

pub use format::Format;
pub(super) use frameworks::MaxText;
pub(crate) use frameworks::OLMO_CORE_LACKING;
pub(crate) use frameworks::{
    is_named_program, is_shipped_by_torchtune, is_torchtune_recipe, program_of_litgpt, starts_own_processes,
};
pub(crate) use huggingface::HARMLESS;
pub(super) use huggingface::{HuggingFace, lacking};
pub(crate) use llama_like::inner_width;
pub use merge::{Text, merge};
pub(super) use models_by_file::known_model;
pub(crate) use names::TABLE as NAMES;
pub use reader::{Claim, Command, Reader, Role};
pub(super) use recipes::{Recipe, Xtuner};
pub use recipes::{RecipeSettings, recipe_names, recipe_settings};
pub use register::{classify, formats, is_setting, keys, read_command};
pub(crate) use rl::{
    NEMO_RL, configuration_of_easy_r1, configuration_of_verl, is_known_to_easy_r1, is_known_to_verl,
};
pub(super) use trainer::{Dialect, Trainer, read_started, turn_dropout_off};
pub(crate) use trainer::{VOCABULARY, open_stage};
pub use workload::Workload;
pub(crate) use workload::accelerator as workload_accelerator;
