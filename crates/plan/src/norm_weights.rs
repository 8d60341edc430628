//! Which norms have weights.

/// Which norms of a model's own modules have weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NormWeights {
    /// Norms over the hidden size.
    pub stream: bool,
    /// Norms of queries and keys.
    pub heads: bool,
    /// Whether a `LayerNorm`'s has a bias beside it.
    pub biases: bool,
}

impl Default for NormWeights {
    /// All of them.
    fn default() -> Self {
        Self { stream: true, heads: true, biases: true }
    }
}
