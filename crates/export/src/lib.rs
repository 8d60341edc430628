//! Writing settings: the script with values changed in place, and the same plan as a Megatron-LM command, as
//! Megatron-Bridge's overrides, as DeepSpeed's JSON, torchtitan's TOML and accelerate's YAML. The output is read back
//! before it is returned, to verify it.

mod accelerate;
mod bridge;
mod deepspeed;
mod deepspeed_text;
mod edit;
mod megatron;
mod named;
mod place;
mod round;
mod titan;

pub use accelerate::{ACCELERATE_FILE, accelerate_command, accelerate_yaml};
pub use bridge::bridge_command;
pub use deepspeed::deepspeed_json;
pub use deepspeed_text::DEEPSPEED_FILE;
pub use edit::{Edited, edit};
pub use megatron::megatron_command;
pub use round::Exported;
pub use titan::{TITAN_FILE, torchtitan_command, torchtitan_toml};
