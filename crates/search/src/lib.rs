//! Other cuts of the same run: every layout that could hold, walked in steps that can be stopped.

mod space;
mod walk;

pub use space::Space;
pub use walk::{Outcome, Walk};
