//! How a number came about: a labelled tree whose parents are computed from their children and
//! whose leaves carry their formula, the values of its symbols, and its source.

mod breakdown;
mod formula;

pub use breakdown::{Breakdown, Rule};
pub use formula::{Explanation, Formula, Symbol};
