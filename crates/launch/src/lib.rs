//! From pasted text to a plan: readers say what they found and never fail, [`resolve`] adds defaults
//! and rules and checks the whole.

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
mod not_modelled;
mod reading;
mod resolve;
mod surroundings;

pub use detect::{Kind, detect};
pub use door::{Request, read, readings};
pub use flags::plan_from_flags;
pub use gather::MAX_TEXTS;
pub use least::least_settings;
pub use log::{Iteration, Log, Memory, is_log, read_log};
pub use not_modelled::{Effect, NotModelled, NotRead};
pub use reading::{Argument, Found, Origin, Question, Reading};
pub use resolve::{MAX_DIAGNOSTICS, Resolution, Setting, SettingValue, resolve};
