//! Settings written out again: the script back with values changed in place, and the same plan as a
//! Megatron-LM command, as Megatron-Bridge's overrides and as DeepSpeed's JSON. What is written is read
//! again before it is given out, so it says what it should.

mod bridge;
mod deepspeed;
mod edit;
mod megatron;
mod place;
mod round;

pub use bridge::bridge_command;
pub use deepspeed::deepspeed_json;
pub use edit::{Edited, edit};
pub use megatron::megatron_command;
pub use round::Exported;
