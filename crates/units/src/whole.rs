//! Sums and products that end at the greatest number there is: each of them once, called from everywhere.

/// The sum of two numbers, at most [`u64::MAX`].
pub(super) const fn sum(one: u64, other: u64) -> u64 {
    one.saturating_add(other)
}

/// The product of two numbers, at most [`u64::MAX`].
pub const fn product(one: u64, other: u64) -> u64 {
    // WebAssembly has no instruction that tells an overflow of 64 bits: `saturating_mul` multiplies in 128 bits there, by a call
    // that took a sixth of the time of a memory estimate. Numbers with 64 leading zeros between them cannot overflow.
    if one.leading_zeros() + other.leading_zeros() >= u64::BITS {
        one * other
    } else {
        one.saturating_mul(other)
    }
}

/// What a whole number with a unit can do; `ZERO` is its own.
macro_rules! exact {
    ($name:ident) => {
        impl $crate::quantity::Quantity for $name {
            fn times(self, times: u64) -> Self {
                Self($crate::whole::product(self.0, times))
            }
            fn greater(self, other: Self) -> Self {
                self.max(other)
            }
            #[allow(clippy::cast_precision_loss)]
            fn number(self) -> f64 {
                self.0 as f64
            }
        }

        impl std::ops::Add for $name {
            type Output = Self;
            fn add(self, other: Self) -> Self {
                Self($crate::whole::sum(self.0, other.0))
            }
        }

        impl std::ops::AddAssign for $name {
            fn add_assign(&mut self, other: Self) {
                *self = *self + other;
            }
        }

        impl std::ops::Mul<u64> for $name {
            type Output = Self;
            fn mul(self, times: u64) -> Self {
                $crate::quantity::Quantity::times(self, times)
            }
        }

        impl std::iter::Sum for $name {
            fn sum<I: Iterator<Item = Self>>(items: I) -> Self {
                items.fold(Self::ZERO, |sum, item| sum + item)
            }
        }
    };
}
pub(crate) use exact;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    proptest! {
        /// Sizes of every magnitude: a shift makes small numbers as likely as large ones.
        #[test]
        fn a_product_saturates(one: u64, other: u64, shifts in (0_u32..64, 0_u32..64)) {
            let (one, other) = (one >> shifts.0, other >> shifts.1);
            prop_assert_eq!(super::product(one, other), one.saturating_mul(other));
        }
    }
}
