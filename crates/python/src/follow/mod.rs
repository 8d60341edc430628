//! Programs that put the options of a training together and hand them to a call that starts it, followed statically.
//!
//! Names stand for what the program assigns to them, fields of its classes for their defaults; conditions, `match`, f-strings,
//! functions, properties and maps are followed. What the text leaves open (loops, other files' functions, variables of the environment)
//! becomes a part of a [`Value`] that has a name, and what hangs on it is open too.

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
