//! Figures that tools report for a run, to be compared with its estimate: logs of Megatron-LM and of Hugging Face's Trainer,
//! PyTorch's memory snapshots, memory summaries and profiler, and nvidia-smi.
//!
//! Files are untrusted: their size and the amount stored from them are bounded, pickles are read as data (nothing in one is
//! ever imported, constructed or called), and whatever a file contains, reading it ends with figures or an error.

mod figures;
mod json;
mod marks;
mod number;
mod pickle;
mod profile;
mod row;
mod smi;
mod snapshot;
mod summary;
mod trainer;
mod tree;

use std::fmt;

pub use figures::{Measured, Remark, Step, Tool};
pub use marks::{is_launch_text, may_hold};
pub use pickle::{PickleError, is_pickle};
pub use row::{Contribution, Provenance, Row, pace};

/// Largest file that is read. Unit: byte.
pub const MOST_BYTES: usize = 512 << 20;

/// Why nothing was read from a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unread {
    /// It is larger than [`MOST_BYTES`].
    TooLarge,
    /// A pickle that cannot be read.
    Pickle(PickleError),
    /// A pickle without the segments of a memory snapshot.
    NoSnapshot,
    /// Neither text nor JSON in a known form.
    Nothing,
}

impl fmt::Display for Unread {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge => write!(out, "it is larger than {} MiB", MOST_BYTES >> 20),
            Self::Pickle(error) => write!(out, "the pickle is not read: {error}"),
            Self::NoSnapshot => out.write_str("the pickle is not a memory snapshot: it has no segments"),
            Self::Nothing => out.write_str("it has no output of a tool that is read here"),
        }
    }
}

impl std::error::Error for Unread {}

/// A file's figures, one value for each tool whose output it contains.
///
/// # Errors
/// Why nothing was read from it.
pub fn read(bytes: &[u8]) -> Result<Vec<Measured>, Unread> {
    if bytes.len() > MOST_BYTES {
        return Err(Unread::TooLarge);
    }
    // Recognized by its first bytes; all other forms are text.
    if pickle::is_pickle(bytes) {
        let tree = pickle::read(bytes).map_err(Unread::Pickle)?;
        return snapshot::of_pickle(&tree).map(|found| vec![found]).ok_or(Unread::NoSnapshot);
    }
    // Lossy: a log may have bytes of a broken terminal between lines that are fine.
    let text = String::from_utf8_lossy(bytes);
    // A JSON document comes from one tool; a text may be a log into which several tools have printed.
    if let Some(found) = json::read(&text) {
        return Ok(vec![found]);
    }
    let all =
        [megatron(&text), trainer::read(&text), summary::read(&text), profile::read(&text), smi::read(&text)];
    let found: Vec<Measured> = all.into_iter().flatten().filter(Measured::says_something).collect();
    if found.is_empty() { Err(Unread::Nothing) } else { Ok(found) }
}

/// The lines of Megatron-LM, which the engine parses itself.
fn megatron(text: &str) -> Option<Measured> {
    let log = shardscope_launch::is_log(text).then(|| shardscope_launch::read_log(text))?;
    let timed = log.iterations.iter().filter(|iteration| iteration.seconds.is_some()).count() as u64;
    Some(Measured {
        step: log.median_seconds().map(|seconds| Step { seconds, count: timed }),
        tflops_per_gpu: log.median_tflops_per_gpu(),
        allocated: log.max_allocated(),
        reserved: log.memory.iter().filter_map(|memory| memory.max_reserved).max(),
        ..Measured::by(Tool::MegatronLog)
    })
}
