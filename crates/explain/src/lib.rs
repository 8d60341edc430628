//! How a number came about: a labelled tree whose parents are computed from their children and
//! whose leaves carry their formula, the values of its symbols, and its source. And what the words mean.

mod breakdown;
mod formula;
mod glossary;
mod terms;

pub use breakdown::{Breakdown, Rule};
pub use formula::{Explanation, Formula, Symbol};
pub use glossary::{glossary, meaning, tables};
pub use terms::{Term, Theme, anchor};
