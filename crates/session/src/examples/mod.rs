//! Worked examples, each one click away: published runs and models everyone knows.

mod example;
mod gallery;
mod known;
mod scaling;
mod tool;

pub use example::{Chapter as ExampleChapter, Estimated, Example, Measure, Published};
pub use gallery::gallery;
