//! The time of one step: arithmetic and communication of every stage for one micro-batch, the schedule
//! they run in, and the epilogue once per step.
//!
//! ```text
//! step = pipeline(forward, backward of every stage, m micro-batches)
//!        + exposed gradient reduction + optimizer + tied embeddings + fixed cost of an iteration
//! ```
//! What a stage takes for one micro-batch is arithmetic (`estimate::compute`) plus the communication
//! that nothing hides; it is never shorter than the host needs to issue its kernels. Beside the estimate stand two physical
//! bounds, fully overlapped and nothing overlapped, and the interval that nine of ten published steps lie in.

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
