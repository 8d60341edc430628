//! From pasted text to a plan: readers report what they found and never fail; [`resolve`] (the crate of that name) adds
//! defaults and rules and checks the result.

mod answers;
mod assigned;
mod by_file;
mod commands;
mod counted;
mod detect;
mod dispatch;
mod environment;
mod estimator;
mod flags;
pub mod launch;
mod limits;
mod log;
mod lone;
mod machines;
mod minimal;
mod model_files;
mod no_run;
mod notebook;
#[cfg(test)]
mod options_of_frameworks;
mod printed;
mod read;
mod scheduled;
mod several;
mod started;
mod strangers;
mod tables;
mod template;
mod weights;
mod written;

pub use detect::{TextKind, detect};
pub use flags::plan_from_flags;
pub use limits::MAX_TEXTS;
pub use log::{Iteration, Log, Memory, is_log, printed_by, read_log};
pub use minimal::minimal_settings;
pub use read::{Request, blank, read, readings};
pub use shardscope_formats::named::quantized_word;
pub use shardscope_formats::{self as formats, Argument, megatron};
use shardscope_formats::{named, options};
pub use shardscope_resolve::{
    Asked, BadValue, Effect, Found, MAX_DIAGNOSTICS, NotModelled, NotRead, Origin, Question, Reading,
    Resolution, Setting, SettingValue, fitting, resolve,
};
pub use tables::{reader_tables, tables};
