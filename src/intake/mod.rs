//! From pasted text to a plan: readers say what they found and never fail, [`resolve`] adds defaults
//! and rules and checks the whole.

mod door;
mod flags;
pub mod launch;
pub mod megatron;
mod reading;
mod resolve;
pub mod shell;
pub mod tree;

pub use door::{Request, read, readings};
pub use flags::plan_from_flags;
pub use reading::{Argument, Found, Origin, Question, Reading};
pub use resolve::{Resolution, Setting, SettingValue, resolve};
