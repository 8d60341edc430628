//! From pasted text to a plan: readers say what they found and never fail, [`resolve`] adds defaults
//! and rules and checks the whole.

mod answers;
mod detect;
mod dispatch;
mod environment;
pub mod export;
mod flags;
pub mod formats;
pub mod launch;
mod log;
pub mod megatron;
mod minimal;
mod named;
mod read;
mod reading;
mod resolve;
mod tables;

pub use answers::VARIABLES;
pub use detect::{TextKind, detect};
pub use dispatch::MAX_TEXTS;
pub use flags::plan_from_flags;
pub use log::{Iteration, Log, Memory, is_log, read_log};
pub use minimal::minimal_settings;
pub use read::{Request, read, readings};
pub use reading::{Argument, Found, Reading};
pub use resolve::{MAX_DIAGNOSTICS, resolve};
pub use shardscope_plan::{
    Effect, NotModelled, NotRead, Origin, Question, Resolution, Setting, SettingValue,
};
pub use tables::{TABLES, provide_tables};
