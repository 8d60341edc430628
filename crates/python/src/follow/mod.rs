//! Static evaluation of programs that assemble the options of a training and pass them to a call that starts it.
//!
//! Names have the values that the program assigns to them, and fields of its classes their defaults; conditions,
//! `match`, f-strings, functions, properties and maps are followed. What the text leaves open (loops, other files'
//! functions, variables of the environment) becomes a named part of a [`Value`], and what depends on it is open too.

mod calls;
mod known;
mod run;
mod scan;
mod value;

pub use known::NODES;
pub use run::{Outcome, Started, follow, returned};
pub use value::{CLOSE, OPEN, Value};

#[cfg(test)]
mod tests;
