//! Bash as it is written, read statically: every word of every command with its place in the text, unknowns kept as named holes.
//!
//! Nothing is executed and nothing is read from the machine. Loops, expansions, recursion and output are bounded by
//! named limits; what a text leaves open (unset variables, positional parameters, the output of programs) becomes a
//! [`Hole`] inside the [`Value`]s that depend on it.

pub mod directives;
mod eval;
mod limits;
mod notes;
mod origin;
mod parse;
mod script;
mod tree;
mod value;

pub use eval::base_name;
pub use eval::{evaluate, evaluate_part};
pub use script::{
    Branch, Command, CommandKind, Directive, Environment, File, Fragment, Hole, HoleKind, Script, Variable,
};
pub use value::{HoleId, Origin, Piece, Pieces, Value, Word};
