//! The time of one step: arithmetic and communication of every stage for one micro-batch, the schedule that they run
//! in, and the epilogue once per step.
//!
//! ```text
//! step = pipeline(forward, backward of every stage, m micro-batches)
//!        + exposed gradient reduction + optimizer + tied embeddings + fixed cost of an iteration
//! ```
//! A stage's time for one micro-batch is its arithmetic (`estimate::compute`) plus exposed communication; it is never
//! shorter than the host needs to issue its kernels. Besides the estimate there are two physical bounds, fully
//! overlapped and nothing overlapped, and the interval that contains nine of ten published steps.

mod anchor;
mod budget;
mod collective;
mod draft;
mod epilogue;
mod interval;
mod overlap;
mod parts;
mod sections;
mod spent;
mod step;
mod unknown;
mod updates;
mod whole;

pub use anchor::measured_factor;
pub use budget::Training;
pub use draft::Draft;
pub(crate) use epilogue::constants;
pub use interval::{FAMILIES, Family, Interval};
pub use sections::Sections;
pub use unknown::{Unknown, unknowns};
pub(crate) use whole::held_against;
pub use whole::{
    ScheduleTimes, Time, exact_step_seconds, part_words, step_seconds, step_seconds_issued,
    step_seconds_with, time, time_with,
};
