//! The Megatron-LM command line of every release, and the settings that its flags state.

mod bridged;
mod engine;
mod family;
mod flags;
mod fork;
mod forks;
mod idle;
mod pai;
mod reader;
mod release;
mod remarks;
mod renamed;
mod respelt;
mod slime;
mod software;
mod spell;
mod tokenizer;
mod unmodelled;
mod width;

pub use flags::TABLE as FLAGS;
pub use flags::{flags_of, known_flags};
pub use idle::TABLE as IDLE;
pub(crate) use idle::{reason_anywhere, reason_of};
pub use reader::read;
pub use reader::{read_of, read_started};
pub use release::known_releases;
pub use spell::spell;
pub use unmodelled::TABLE as UNMODELLED;
