//! Static evaluation of bash scripts: every word of every command with its place in the text, with unknowns kept as
//! named holes.
//!
//! Nothing is executed and nothing is read from the machine. Loops, expansions, recursion and output are bounded by
//! named limits; what a text leaves open (unset variables, positional parameters, the output of programs) becomes a
//! [`Hole`] inside the [`Value`]s that depend on it.
//!
//! ```
//! use shardscope_bash::{Environment, evaluate};
//! use shardscope_source::Source;
//!
//! let source = Source::new("TP=$((2 * 4))\ntorchrun train.py --tp $TP --data $DATA\n");
//! let script = evaluate(&source, &Environment::default());
//! let words = &script.commands[0].words;
//! assert_eq!(words[3].known(), Some("8"));
//! // The text does not say what DATA is: the word stays open, and the hole has its name.
//! assert_eq!(words[5].known(), None);
//! let hole = words[5].value.first_hole().and_then(|id| script.hole(id)).expect("a hole");
//! assert_eq!(hole.name, "DATA");
//!
//! // Who calls the script knows.
//! let variables = vec![("DATA".to_owned(), "/data/c4".to_owned())];
//! let script = evaluate(&source, &Environment { variables, ..Environment::default() });
//! assert_eq!(script.commands[0].words[5].known(), Some("/data/c4"));
//! ```

pub mod directives;
mod eval;
pub mod limits;
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
