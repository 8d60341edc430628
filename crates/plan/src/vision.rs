//! The vision tower beside a decoder.

use super::number::Number;

/// A vision tower with what projects its output onto the decoder's width, both frozen: nothing of it has a gradient, and of
/// its forward pass nothing is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VisionTower {
    /// Parameters of both.
    pub parameters: u64,
    /// Transformer layers of the tower.
    pub layers: u64,
    /// Parameters of one of them.
    pub layer_parameters: u64,
    /// Width of its residual stream.
    pub hidden_size: u64,
    /// Patches of an image that become one token of the decoder's sequence.
    pub patches_per_token: u64,
    /// Number format of its weights; none: that of the model's.
    pub dtype: Option<Number>,
}

impl VisionTower {
    /// Parameters outside of its layers: the embedding of patches, norms, the projector.
    #[must_use]
    pub fn outside_layers(&self) -> u64 {
        self.parameters.saturating_sub(self.layers.saturating_mul(self.layer_parameters))
    }
}
