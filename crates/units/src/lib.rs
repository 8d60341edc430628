//! Typed quantities, and the only place that writes a number with its unit.
//!
//! Bytes and counts are exact `u64` (never `usize`: 32 bits in wasm); times, rates and FLOPs are
//! finite `f64` (an iteration of a 1T-parameter run is 3.8e19 FLOPs, more than a `u64` holds).

mod bytes;
mod count;
mod display;
mod real;
mod whole;

pub use bytes::Bytes;
pub use count::Count;
pub use display::{decimal, gb, gib, grouped, mib, percent, rounded, seconds, size, tflops};
pub use real::{BytesPerSecond, Flops, FlopsPerSecond, Seconds};
pub use whole::product;

/// What a breakdown can add up.
pub trait Quantity: Copy + Default + PartialEq + std::fmt::Debug + std::iter::Sum<Self> {
    /// The quantity `times` over.
    #[must_use]
    fn times(self, times: u64) -> Self;
    /// The greater of the two.
    #[must_use]
    fn greater(self, other: Self) -> Self;
    /// The bare number, for shares and pictures; exact below 2^53.
    fn number(self) -> f64;
}
