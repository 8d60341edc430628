//! Counts of parameters, elements, tokens and calls, exact.

use serde::Serialize;

use super::bytes::Bytes;
use super::whole::{exact, product};

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

exact!(Count);
