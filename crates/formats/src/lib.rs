//! Launch formats: one [`Reader`] each, listed in the register; Megatron-LM's flags; and the effects of framework
//! options that no reader looks at.

mod accelerate;
mod argument;
mod aws_fsdp;
mod bases;
mod beneath;
mod deepspeed;
mod dotted;
mod flags;
mod format;
mod frameworks;
mod huggingface;
mod kubernetes;
pub mod launcher;
mod leaves;
mod llama_like;
pub mod megatron;
mod merge;
mod models_by_file;
pub mod named;
mod names;
mod nanotron;
pub mod nemo;
mod neox;
pub mod options;
#[cfg(test)]
mod options_of_trainers;
mod primus;
mod projections;
mod reader;
pub mod recipes;
mod register;
pub mod releases;
mod remote_code;
pub mod rl;
mod scalars;
mod signs;
mod skypilot;
#[cfg(test)]
mod spent;
pub mod telling;
mod titan;
mod trainer;
mod workload;

pub use accelerate::{Accelerate, read_launcher};
pub use argument::Argument;
pub use beneath::{has_no_place, overridden, overrides};
pub use format::Format;
pub use frameworks::{
    MaxText, OLMO_CORE_LACKING, is_named_program, is_shipped_by_torchtune, is_torchtune_recipe,
    program_of_litgpt, starts_own_processes,
};
pub(crate) use huggingface::lacking;
pub use huggingface::{HARMLESS, HuggingFace};
pub(crate) use llama_like::inner_width;
pub use merge::{Text, merge};
pub use models_by_file::known_model;
pub use names::TABLE as NAMES;
pub use reader::{Claim, Command, Reader, Role};
pub use recipes::{Recipe, RecipeSettings, Xtuner, recipe_names, recipe_settings};
pub use register::{classify, formats, is_setting, keys, read_command};
pub use rl::{
    NEMO_RL, configuration_of_easy_r1, configuration_of_verl, is_known_to_easy_r1, is_known_to_verl,
};
pub(crate) use trainer::offloads;
pub use trainer::{
    Dialect, FSDP_SETTINGS, Trainer, VOCABULARY, is_of_oumi, left_to_accelerate, of_trainer, read_started,
    turn_dropout_off,
};
pub use trainer::{open_stage, shared_by};
pub use workload::{Workload, accelerator as workload_accelerator};

use shardscope_resolve::{Asked, Effect, Found, NotModelled, NotRead, Origin, Question, Reading};
