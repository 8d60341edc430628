//! What a script would do, as far as its text determines: nothing is run, nothing is read from the machine.

mod arithmetic;
mod assign;
mod assigned;
mod bc;
mod braces;
mod branch;
mod builtins;
mod columns;
mod condition;
mod control;
mod edits;
mod finish;
mod format;
mod inner;
mod joined;
mod lines;
mod number;
mod operation;
mod parameter;
mod pattern;
mod programs;
mod python;
mod regex;
mod sed;
mod simple;
mod state;
mod texts;
mod unset;
mod variables;
mod words;

pub use programs::base_name;
pub(crate) use state::Evaluator;

pub use finish::{evaluate, evaluate_part};
