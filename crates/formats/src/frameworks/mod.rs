//! Trainers whose settings files name model, batch and machines, and whose own layers are not modelled: their settings
//! are read, and the verdict stops at the memory of their layers.

mod automodel;
mod jax;
mod levanter;
mod lingua;
mod litgpt;
mod llm_foundry;
mod maxtext;
mod mindspeed_fsdp;
mod named;
mod neuron;
mod olmo;
mod olmo_core;
mod own_names;
mod prime_rl;
mod row;
mod torchtune;

pub(super) use automodel::{AUTOMODEL, DRAFTS, has_recorded_plan, one_by_one};
pub(super) use levanter::LEVANTER;
pub(super) use lingua::LINGUA;
#[cfg(test)]
pub(super) use litgpt::LITGPT;
pub(super) use litgpt::Litgpt;
use litgpt::is_program as is_litgpt_program;
pub use litgpt::program as program_of_litgpt;
pub(super) use llm_foundry::LLM_FOUNDRY;
pub use maxtext::MaxText;
pub(super) use mindspeed_fsdp::MINDSPEED_FSDP;
pub(super) use named::{ALIGN_ANYTHING, ARCTIC, CHATLEARN, H2O, LUDWIG, MISTRAL, PIPELINE_RL, VEOMNI};
pub(super) use neuron::NEURON;
pub(super) use olmo::OLMO;
pub use olmo_core::LACKING as OLMO_CORE_LACKING;
pub(super) use olmo_core::OLMO_CORE;
pub(crate) use olmo_core::{factory, like};
pub(super) use prime_rl::{PRIME_RL, PRIME_SFT};
#[cfg(test)]
pub(super) use torchtune::TORCHTUNE;
pub(super) use torchtune::Torchtune;
pub use torchtune::{is_recipe as is_torchtune_recipe, is_shipped as is_shipped_by_torchtune};

/// Whether a program is one that a trainer's own command starts by name: a torchtune recipe or a litgpt program.
pub fn is_named_program(program: &str) -> bool {
    is_torchtune_recipe(program) || is_litgpt_program(program)
}

/// Whether a program starts its processes by itself, on as many accelerators as its own options say: litgpt's, and verl's
/// supervised trainer under Ray.
pub fn starts_own_processes(program: &str) -> bool {
    is_litgpt_program(program) || crate::rl::starts_workers(program)
}
