//! Times, rates and FLOPs: finite reals, a NaN counts as nothing.

use serde::Serialize;

use super::quantity::Quantity;

/// `value`, or nothing where it is not finite.
const fn finite(value: f64) -> f64 {
    if value.is_finite() { value } else { 0.0 }
}

macro_rules! real {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd, Serialize)]
        #[serde(transparent)]
        pub struct $name(f64);

        impl $name {
            /// None.
            pub const ZERO: Self = Self(0.0);

            /// So much, in the unit of the type; what is not finite counts as nothing.
            #[must_use]
            // A NaN would spread through every sum that it is part of.
            pub const fn new(value: f64) -> Self {
                Self(finite(value))
            }

            /// The bare number, in the unit of the type.
            #[must_use]
            pub const fn get(self) -> f64 {
                self.0
            }
        }

        impl Quantity for $name {
            #[allow(clippy::cast_precision_loss)]
            fn times(self, times: u64) -> Self {
                Self::new(self.0 * times as f64)
            }
            fn greater(self, other: Self) -> Self {
                // `f64::max`, as no value here is NaN: `new` lets none in.
                Self(self.0.max(other.0))
            }
            fn number(self) -> f64 {
                self.0
            }
        }

        impl std::ops::Add for $name {
            type Output = Self;
            fn add(self, other: Self) -> Self {
                Self::new(self.0 + other.0)
            }
        }

        impl std::ops::AddAssign for $name {
            fn add_assign(&mut self, other: Self) {
                *self = *self + other;
            }
        }

        impl std::ops::Sub for $name {
            type Output = Self;
            fn sub(self, other: Self) -> Self {
                Self::new(self.0 - other.0)
            }
        }

        impl std::ops::Mul<f64> for $name {
            type Output = Self;
            fn mul(self, factor: f64) -> Self {
                Self::new(self.0 * factor)
            }
        }

        impl std::ops::Div<f64> for $name {
            type Output = Self;
            fn div(self, divisor: f64) -> Self {
                // Through `new`: a division by zero counts as nothing, not as infinity.
                Self::new(self.0 / divisor)
            }
        }

        impl std::iter::Sum for $name {
            fn sum<I: Iterator<Item = Self>>(items: I) -> Self {
                items.fold(Self::ZERO, |sum, item| sum + item)
            }
        }
    };
}

real!(
    /// A duration. Unit: second.
    Seconds
);
real!(
    /// Floating-point operations; a multiply-add is two. Unit: FLOP.
    Flops
);
real!(
    /// A rate of arithmetic. Unit: FLOP per second.
    FlopsPerSecond
);
real!(
    /// A rate of transfer, per direction unless said otherwise. Unit: byte per second.
    BytesPerSecond
);

impl Seconds {
    /// So many microseconds.
    #[must_use]
    pub const fn microseconds(value: f64) -> Self {
        Self::new(value * 1e-6)
    }
    /// So many milliseconds.
    #[must_use]
    pub const fn milliseconds(value: f64) -> Self {
        Self::new(value * 1e-3)
    }
}

impl FlopsPerSecond {
    /// So many TFLOP/s (10^12).
    #[must_use]
    pub const fn tera(value: f64) -> Self {
        Self::new(value * 1e12)
    }
}

impl BytesPerSecond {
    /// So many GB/s (10^9 bytes).
    #[must_use]
    pub const fn giga(value: f64) -> Self {
        Self::new(value * 1e9)
    }
    /// So many TB/s (10^12 bytes).
    #[must_use]
    pub const fn tera(value: f64) -> Self {
        Self::new(value * 1e12)
    }
}
