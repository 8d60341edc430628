//! The vision tower beside a decoder.

use super::number::Number;

/// A vision tower with what projects its output onto the decoder's width.
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
    /// The projector, where it trains behind a frozen tower.
    pub projector: Option<Projector>,
    /// What of the tower, and of a projector that is not apart, has gradients.
    pub gradients: TowerGradients,
    /// What it keeps for backward, where that is known and anything of it has gradients.
    pub kept: Option<VisionKept>,
    /// Whether its layers are recomputed where the decoder's are.
    pub recomputed: bool,
    /// Patches of the images of a sample, all together, where that is known.
    pub image_patches: Option<u64>,
}

/// What of a vision tower has gradients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TowerGradients {
    /// Nothing: it is frozen, and nothing of its forward pass is kept.
    #[default]
    None,
    /// Its tensors alone: weights are frozen, and what embeds patches is made to require a gradient
    /// (`enable_input_require_grads` of transformers 5).
    Through,
    /// Its weights, and all tensors.
    Trained,
}

/// What a tower keeps for backward: kinds of modules in its layers and sizes, as the rules of its type state them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VisionKept {
    /// Attention heads.
    pub heads: u64,
    /// Width of a layer's MLP.
    pub ffn: u64,
    /// Tokens in front of each image's patches.
    pub prefix: u64,
    /// Patches of one image, where that is fixed; else 0.
    pub image: u64,
    /// Side of a patch, in pixels.
    pub patch: u64,
    /// Outside of the layers, of each token that the decoder gets: bytes where all trains.
    pub ends: u64,
    /// The same where gradients only pass.
    pub ends_through: u64,
    /// What LayerNorms in fp32 among operations in 16 bits add to both.
    pub ends_wide: u64,
    /// Outside of the layers, once: bytes where all trains.
    pub once: u64,
    /// The same where gradients only pass.
    pub once_through: u64,
    /// What LayerNorms in fp32 add to both.
    pub once_wide: u64,
    /// Whether queries, keys and values come from one projection, of whose output the values are a view.
    pub fused_queries: bool,
    /// Whether images attend one by one and their outputs are joined, a copy, unless one kernel takes them all (flash attention).
    pub joined_output: bool,
    /// Whether norms are RMSNorms written in Python; else they are LayerNorms.
    pub rms_norms: bool,
    /// Whether the MLP is gated.
    pub gated: bool,
    /// Whether the activation is x · sigmoid(1.702 x).
    pub quick_gelu: bool,
    /// Whether weights multiply what attention and MLP add to the residual stream.
    pub scaled: bool,
}

impl VisionKept {
    /// What these words say; none where one is not known.
    #[must_use]
    pub fn named(words: &[&str]) -> Option<Self> {
        let mut kept = Self::default();
        for word in words {
            match *word {
                "fused_queries" => kept.fused_queries = true,
                "joined_output" => kept.joined_output = true,
                "rms_norms" => kept.rms_norms = true,
                "gated" => kept.gated = true,
                "quick_gelu" => kept.quick_gelu = true,
                "scaled" => kept.scaled = true,
                word => kept.size(word)?,
            }
        }
        // Without these two nothing of a layer can be counted.
        (kept.heads > 0 && kept.ffn > 0).then_some(kept)
    }

    fn size(&mut self, word: &str) -> Option<()> {
        let (name, number) = word.split_once('=')?;
        let size = match name {
            "heads" => &mut self.heads,
            "f" => &mut self.ffn,
            "prefix" => &mut self.prefix,
            "image" => &mut self.image,
            "p" => &mut self.patch,
            "ends" => &mut self.ends,
            "ends_hooked" => &mut self.ends_through,
            "ends_wide" => &mut self.ends_wide,
            "ends_once" => &mut self.once,
            "ends_hooked_once" => &mut self.once_through,
            "ends_wide_once" => &mut self.once_wide,
            _ => return None,
        };
        // Bounded here, as these sizes are words of one setting and have no bounds of their own.
        *size = number.parse().ok().filter(|size| *size <= MAX_KEPT)?;
        Some(())
    }
}

/// The most that is taken for a size of what a tower keeps: bytes of an image's token, or of what there is once.
const MAX_KEPT: u64 = 1 << 32;

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
        // Each with a bias, hence the one more row.
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
