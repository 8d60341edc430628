//! Who sends what to whom.

mod buffers;

pub use buffers::{Buffer, buffers};
