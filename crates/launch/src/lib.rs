//! From pasted text to a plan: readers say what they found and never fail, [`resolve`] adds defaults
//! and rules and checks the whole.

mod answers;
mod detect;
mod door;
pub mod export;
mod flags;
pub mod formats;
mod gather;
pub mod launch;
mod least;
mod log;
pub mod megatron;
mod named;
mod reading;
mod resolve;
mod surroundings;

pub use answers::VARIABLES;
pub use detect::{Kind, detect};
pub use door::{Request, read, readings};
pub use flags::plan_from_flags;
pub use gather::MAX_TEXTS;
pub use least::least_settings;
pub use log::{Iteration, Log, Memory, is_log, read_log};
pub use reading::{Argument, Found, Reading};
pub use resolve::{MAX_DIAGNOSTICS, resolve};
pub use shardscope_plan::{
    Effect, NotModelled, NotRead, Origin, Question, Resolution, Setting, SettingValue,
};
