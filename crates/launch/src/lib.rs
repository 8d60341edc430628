//! From pasted text to a plan: readers say what they found and never fail, [`resolve`] (the crate of that name) adds
//! defaults and rules and checks the whole.

mod answers;
mod argument;
mod commands;
mod counted;
mod detect;
mod dispatch;
mod environment;
mod flags;
pub mod formats;
pub mod launch;
mod log;
mod machines;
pub mod megatron;
mod minimal;
mod named;
mod notebook;
mod options;
mod read;
mod several;
#[cfg(test)]
mod spent;
mod started;
mod strangers;
mod tables;
mod telling;
mod template;
mod weights;

pub use argument::Argument;
pub use detect::{TextKind, detect};
pub use flags::plan_from_flags;
pub use log::{Iteration, Log, Memory, is_log, read_log};
pub use minimal::minimal_settings;
pub use named::quantized_word;
pub use read::{Request, blank, read, readings};
pub use several::MAX_TEXTS;
pub use shardscope_resolve::{
    ARGUMENTS, AnswerKind, BadValue, Effect, Found, MAX_DIAGNOSTICS, NotModelled, NotRead, Origin, Question,
    Reading, Resolution, Setting, SettingValue, VARIABLES, fitting, resolve,
};
pub use tables::tables;
