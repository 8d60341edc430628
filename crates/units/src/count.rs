//! Counts of parameters, elements, tokens and calls, exact.

use serde::Serialize;

use super::bytes::Bytes;
use super::quantity::Quantity;
use super::whole::{product, sum};

/// A number of things, exact: parameters, elements, tokens, calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Count(u64);

impl Count {
    /// None.
    pub const ZERO: Self = Self(0);

    /// `count` of something.
    #[must_use]
    pub const fn new(count: u64) -> Self {
        Self(count)
    }

    /// The least whole number that is not below `value`; what is negative or no number counts as none.
    #[must_use]
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    pub fn rounded_up(value: f64) -> Self {
        // A cast from f64 saturates and takes NaN to 0, which is what untrusted fractions need.
        Self(value.ceil() as u64)
    }

    /// The product of a shape's dimensions.
    #[must_use]
    pub fn of_shape(shape: &[u64]) -> Self {
        // 1 for a shape without dimensions: a scalar has one element, as in PyTorch.
        Self(shape.iter().fold(1, |so_far, &dimension| product(so_far, dimension)))
    }

    /// The number itself.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The bytes of so many elements of `width` bytes each.
    #[must_use]
    pub const fn bytes(self, width: u64) -> Bytes {
        Bytes::new(product(self.0, width))
    }
}

impl Quantity for Count {
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

impl std::ops::Add for Count {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(sum(self.0, other.0))
    }
}

impl std::ops::AddAssign for Count {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl std::ops::Mul<u64> for Count {
    type Output = Self;
    fn mul(self, times: u64) -> Self {
        self.times(times)
    }
}

impl std::iter::Sum for Count {
    fn sum<I: Iterator<Item = Self>>(items: I) -> Self {
        items.fold(Self::ZERO, |sum, item| sum + item)
    }
}
