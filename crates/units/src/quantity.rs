//! What every unit can do: be added up, repeated and compared.

/// A quantity that can be added up, multiplied by a count and compared: what breakdowns are made of.
pub trait Quantity: Copy + Default + PartialEq + std::fmt::Debug + std::iter::Sum<Self> {
    /// The quantity multiplied by a count; whole ones saturate.
    #[must_use]
    fn times(self, times: u64) -> Self;
    /// The greater of two quantities.
    #[must_use]
    fn greater(self, other: Self) -> Self;
    /// The bare number, for shares and pictures; exact below 2^53.
    fn number(self) -> f64;
}
