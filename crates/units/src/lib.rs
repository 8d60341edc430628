//! Typed quantities, and the only place that writes a number with its unit.
//!
//! Bytes and counts are exact `u64` (never `usize`: 32 bits in wasm); times, rates and FLOPs are
//! finite `f64` (an iteration of a 1T-parameter run is 3.8e19 FLOPs, more than a `u64` holds).

mod bytes;
mod count;
mod display;
mod quantity;
mod rates;
mod real;
mod whole;

pub use bytes::Bytes;
pub use count::Count;
pub use display::{decimal, gb, gib, grouped, mib, percent, rounded, seconds, size, tflops};
pub use quantity::Quantity;
pub use real::{BytesPerSecond, Flops, FlopsPerSecond, Seconds};
pub use whole::product;
