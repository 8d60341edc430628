//! From pasted text to a plan: readers say what they found and never fail, [`resolve`] adds defaults
//! and rules and checks the whole.

pub mod megatron;
mod reading;

pub use reading::{Argument, Found, Origin, Question, Reading};
