//! Bytes, exact.

use serde::Serialize;

use super::quantity::Quantity;
use super::whole::{exact, product};

/// A number of bytes, exact. Unit: byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Bytes(u64);

impl Bytes {
    /// No bytes.
    pub const ZERO: Self = Self(0);

    /// `bytes` bytes.
    #[must_use]
    pub const fn new(bytes: u64) -> Self {
        Self(bytes)
    }

    /// So many GiB (2^30 bytes).
    #[must_use]
    pub const fn gib(gib: u64) -> Self {
        // Sizes come from what a reader typed: too large ends at the greatest number, never in a panic or a wrapped sum.
        Self(gib.saturating_mul(1 << 30))
    }

    /// So many MiB (2^20 bytes).
    #[must_use]
    pub const fn mib(mib: u64) -> Self {
        Self(mib.saturating_mul(1 << 20))
    }

    /// The number of bytes.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// In GiB (2^30 bytes).
    #[must_use]
    pub fn in_gib(self) -> f64 {
        self.number() / f64::from(1_u32 << 30)
    }

    /// In MiB (2^20 bytes).
    #[must_use]
    pub fn in_mib(self) -> f64 {
        self.number() / f64::from(1_u32 << 20)
    }

    /// The difference, zero where `other` is more.
    #[must_use]
    pub const fn less(self, other: Self) -> Self {
        // Estimates take parts off a whole that rounding may leave a byte short: wrapping to 2^64 would be the worst answer.
        Self(self.0.saturating_sub(other.0))
    }

    /// Rounded up to a multiple of `block` bytes.
    #[must_use]
    pub const fn rounded_up(self, block: u64) -> Self {
        Self(product(self.0.div_ceil(block), block))
    }
}

exact!(Bytes);
