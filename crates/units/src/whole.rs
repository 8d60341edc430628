//! Sums and products that end at the greatest number there is: each of them once, called from everywhere.

/// The sum of two numbers.
pub(super) const fn sum(one: u64, other: u64) -> u64 {
    one.saturating_add(other)
}

/// The product of two numbers.
pub const fn product(one: u64, other: u64) -> u64 {
    one.saturating_mul(other)
}
