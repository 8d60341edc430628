//! Settings files of every framework, read into Megatron's settings: one reader per format.

mod accelerate;
mod deepspeed;
mod flags;
mod frameworks;
mod huggingface;
mod interpolate;
mod keys;
mod kind;
mod kubernetes;
mod leaves;
mod merge;
mod nanotron;
mod nemo;
mod neox;
mod rl;
mod scalars;
mod titan;
pub(crate) mod trainer;
mod words;

pub(super) use flags::known_model;
pub use frameworks::Framework;
pub(super) use huggingface::lacking;
pub use keys::keys;
pub use kind::{Format, bases, classify, read, read_job, read_titan};
pub use kubernetes::Workload;
pub use merge::{Text, merge};
pub use trainer::Dialect;
pub use words::{is_setting, read_words};
