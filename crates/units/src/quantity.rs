//! What every unit can do: be added up, repeated and compared.

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
