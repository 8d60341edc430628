//! The Megatron-LM command line of every age, and what its flags state.

mod engine;
mod family;
mod flags;
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
mod unmodelled;
mod width;

pub(crate) use flags::TABLE as FLAGS;
pub use flags::{flags_of, known_flags};
pub(crate) use idle::TABLE as IDLE;
pub(crate) use idle::{reason_anywhere, reason_of};
pub use reader::read;
pub(crate) use reader::read_of;
pub use release::known_releases;
pub use spell::spell;
pub(crate) use unmodelled::TABLE as UNMODELLED;
