//! Other layouts of the same run: every layout that the software could run, decided by branch and bound in
//! interruptible steps.

mod comparison;
mod dimension;
mod dominance;
mod edits;
mod effect;
mod exhaust;
mod floor;
mod known;
mod leaves;
mod moved;
mod other;
mod outcome;
mod published;
mod question;
mod reasons;
mod results;
mod sentence;
mod space;
mod walk;
mod why_not;

pub use comparison::{Candidate, Comparison, Preferred};
pub use dimension::{Choices, Dimension, Values};
pub use edits::{Edited, best_edits, one_edit, single_edits, three_edits, two_edits};
pub use effect::effect;
pub use exhaust::{Exhausted, exhaust};
pub use floor::least_gpus;
pub use moved::{Moved, moved, unmoved};
pub use outcome::{Outcome, Tally};
pub use published::{Published, published};
pub use question::{Inquiry, Question, Reached};
pub use reasons::refusal;
pub use sentence::cheapest;
pub use space::{Edit, Space, typed};
pub use walk::{Aim, Walk};
pub use why_not::{Lack, Slower, WhyNot, why_not};

#[cfg(test)]
#[path = "../tests/pairs/mod.rs"]
#[allow(unreachable_pub, reason = "shared with the integration tests")]
mod pairs;
