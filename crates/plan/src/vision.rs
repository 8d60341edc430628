//! The vision tower beside a decoder.

use super::number::Number;

/// A vision tower with what projects its output onto the decoder's width. The tower is frozen: nothing of it has a gradient,
/// and of its forward pass nothing is kept. The projector is too, unless it says that it trains.
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
    /// The projector, where it trains.
    pub projector: Option<Projector>,
}

/// A projector that trains behind a frozen tower (`llava/model/multimodal_projector/builder.py`): linear layers with a bias, a
/// GELU between two of them, the first from the tower's width and all onto the decoder's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Projector {
    /// Linear layers.
    pub layers: u64,
    /// Patches of the one image that each sample has; each becomes a token.
    pub patches: u64,
}

impl Projector {
    /// Parameters of it between these widths.
    #[must_use]
    pub const fn parameters(&self, tower: u64, decoder: u64) -> u64 {
        let behind = self.layers.saturating_sub(1);
        (tower + 1)
            .saturating_mul(decoder)
            .saturating_add(behind.saturating_mul(decoder + 1).saturating_mul(decoder))
    }
}

impl VisionTower {
    /// Parameters outside of its layers: the embedding of patches, norms, the projector, frozen or not.
    #[must_use]
    pub fn outside_layers(&self) -> u64 {
        self.parameters.saturating_sub(self.layers.saturating_mul(self.layer_parameters))
    }
}
