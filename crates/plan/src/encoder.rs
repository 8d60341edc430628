//! The encoder in front of a decoder (T5), to whose output every layer of the decoder attends.

/// An encoder of layers as wide as the decoder's: as many heads, the same MLP and norms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encoder {
    /// Layers.
    pub layers: u64,
    /// Length of the sequence that it reads, in tokens.
    pub seq_length: u64,
    /// Rows of the table of distances between tokens, of which each stack has one with a number per head: what is looked up
    /// is added to the scores of every layer (T5's relative position bias).
    pub buckets: u64,
}
