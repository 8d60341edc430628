//! Bytes, exact.

use serde::Serialize;

use super::quantity::Quantity;
use super::whole::{product, sum};

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

impl Quantity for Bytes {
    fn times(self, times: u64) -> Self {
        Self(product(self.0, times))
    }
    fn greater(self, other: Self) -> Self {
        self.max(other)
    }
    #[allow(clippy::cast_precision_loss)]
    fn number(self) -> f64 {
        self.0 as f64
    }
}

impl std::ops::Add for Bytes {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(sum(self.0, other.0))
    }
}

impl std::ops::AddAssign for Bytes {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl std::ops::Mul<u64> for Bytes {
    type Output = Self;
    fn mul(self, times: u64) -> Self {
        self.times(times)
    }
}

impl std::iter::Sum for Bytes {
    fn sum<I: Iterator<Item = Self>>(items: I) -> Self {
        items.fold(Self::ZERO, |sum, item| sum + item)
    }
}
