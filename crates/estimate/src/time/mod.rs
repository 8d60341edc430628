//! The time of one step: arithmetic and communication of every stage for one micro-batch, the schedule
//! they run in, and the tail once per step.
//!
//! ```text
//! step = pipeline(forward, backward of every stage, m micro-batches)
//!        + exposed gradient reduction + optimizer + tied embeddings + fixed cost of an iteration
//! ```
//! What a stage takes for one micro-batch is arithmetic (`estimate::compute`) plus the communication
//! that nothing hides; it is never shorter than the host needs to issue its kernels. The lower bound
//! lets everything overlap that could, the upper bound nothing.

mod budget;
mod collective;
mod draft;
mod overlap;
mod parts;
mod spent;
mod step;
mod tail;
mod unknown;
mod whole;

pub use budget::Training;
pub use draft::{Draft, Sections};
pub(crate) use tail::constants;
pub use unknown::{Unknown, unknowns};
pub use whole::{
    ScheduleTimes, Time, exact_step_seconds, part_words, step_seconds, step_seconds_with, time, time_with,
};
