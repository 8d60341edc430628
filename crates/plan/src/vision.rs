//! The vision tower beside a decoder.

use super::number::NumberFormat;

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
    pub dtype: Option<NumberFormat>,
    /// The projector, where it trains behind a frozen tower.
    pub projector: Option<Projector>,
    /// What of the tower has gradients, mergers and a projector that is not apart aside.
    pub gradients: TowerGradients,
    /// Whether weights of a projector that is not apart train, or where the tower has adapters those of the projector.
    pub projector_trains: bool,
    /// Whether weights of mergers of deep layers do, or their adapters (Qwen3-VL).
    pub deep_trains: bool,
    /// What it keeps for backward, where that is known and anything of it has gradients.
    pub kept: Option<VisionKept>,
    /// Which of its norms are Liger's.
    pub liger: TowerLiger,
    /// Whether its layers are recomputed where the decoder's are.
    pub recomputed: bool,
    /// Patches of the images of a sample, all together, where that is known.
    pub image_patches: Option<u64>,
    /// Whether tensor ranks hold it whole, as modules of transformers beside a decoder of Megatron core.
    pub whole: bool,
    /// Whether the engine for rollouts alone has it: what trains is the decoder by itself.
    pub in_engine_alone: bool,
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
    /// Adapters beside the linear layers of its layers, and all tensors.
    Adapted,
    /// Its weights, and all tensors.
    Trained,
}

/// Which norms of a tower Liger's kernels stand for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TowerLiger {
    /// None.
    #[default]
    None,
    /// Those of its layers: of a model that was built.
    Layers,
    /// All of their class, the projector's too: patched before a model is built.
    Class,
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
    /// What the projector keeps less where Liger's norm stands in it and all trains, with norms in 16 bits.
    pub ends_liger: u64,
    /// Parameters of a layer that an engine for rollouts cuts over its tensor ranks; 0 where that is not known.
    pub cut_layer: u64,
    /// The same outside of the layers.
    pub cut_ends: u64,
    /// Parameters of the projector, without mergers of deep layers.
    pub projector: u64,
    /// Of what is kept outside of the layers, that of a projector which trains behind a frozen tower.
    pub merge: Kept,
    /// What a projector keeps more where its weights train than where gradients only pass it.
    pub merge_more: u64,
    /// Widths between which linear layers project, the first one's input first; 0 behind the last.
    pub widths: [u64; 4],
    /// Mergers of deep layers.
    pub deep_mergers: u64,
    /// Parameters of mergers of deep layers.
    pub deep_projector: u64,
    /// What those mergers keep where they train behind a frozen tower.
    pub deep: Kept,
    /// What they keep more where their weights train.
    pub deep_more: u64,
    /// Whether queries, keys and values come from one projection, of whose output the values are a view.
    pub fused_queries: bool,
    /// Whether images attend one by one and their outputs are joined, a copy, unless one kernel takes them all (flash attention).
    pub joined_output: bool,
    /// Whether norms are RMSNorms written in Python; else they are LayerNorms.
    pub rms_norms: bool,
    /// Whether the MLP is gated.
    pub gated: bool,
    /// Whether attention has a mask of all patches of a micro-batch, unless one kernel takes images one by one (flash attention).
    pub masked: bool,
    /// Whether Liger has kernels for norms of its layers; none where what it has is not known.
    pub liger: Option<bool>,
    /// Whether the activation is x · sigmoid(1.702 x).
    pub quick_gelu: bool,
    /// Whether weights multiply what attention and MLP add to the residual stream.
    pub scaled: bool,
    /// Whether transformers names its layers among those that are not to be split (`_no_split_modules`).
    pub unsplit: bool,
    /// Whether Automodel has a class of its own for the whole.
    pub own_in_automodel: bool,
    /// Of what is kept outside of the layers, the fp32 tables that rotate, bytes of each patch: a layer that casts its inputs keeps them
    /// for itself.
    pub tables: u64,
    /// What the projector keeps more of each token where layers hand on fp32 and all trains.
    pub ends_after_wide: u64,
}

/// Bytes kept outside of the layers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// For each token that the decoder gets.
    pub each: u64,
    /// What LayerNorms in fp32 among operations in 16 bits add to that.
    pub wide: u64,
    /// What they add once.
    pub once_wide: u64,
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
                "masked" => kept.masked = true,
                "liger_norms" => kept.liger = Some(true),
                "without_liger" => kept.liger = Some(false),
                "quick_gelu" => kept.quick_gelu = true,
                "scaled" => kept.scaled = true,
                "unsplit" => kept.unsplit = true,
                "own_in_automodel" => kept.own_in_automodel = true,
                word => kept.size(word)?,
            }
        }
        // Without these two nothing of a layer can be counted.
        (kept.heads > 0 && kept.ffn > 0).then_some(kept)
    }

    fn size(&mut self, word: &str) -> Option<()> {
        let (name, number) = word.split_once('=')?;
        if let Some(place) = name.strip_prefix("width_") {
            let width = self.widths.get_mut(place.parse::<usize>().ok()?)?;
            *width = number.parse().ok().filter(|size| *size <= MAX_KEPT)?;
            return Some(());
        }
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
            "ends_liger" => &mut self.ends_liger,
            "cast_tables" => &mut self.tables,
            "ends_after_wide" => &mut self.ends_after_wide,
            "cut_layer" => &mut self.cut_layer,
            "cut_ends" => &mut self.cut_ends,
            "projector" => &mut self.projector,
            "merge" => &mut self.merge.each,
            "merge_wide" => &mut self.merge.wide,
            "merge_wide_once" => &mut self.merge.once_wide,
            "merge_more" => &mut self.merge_more,
            "deep_mergers" => &mut self.deep_mergers,
            "deep_projector" => &mut self.deep_projector,
            "deep" => &mut self.deep.each,
            "deep_wide" => &mut self.deep.wide,
            "deep_wide_once" => &mut self.deep.once_wide,
            "deep_more" => &mut self.deep_more,
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

    /// Parameters of a projector that is not apart and of mergers of deep layers, those of either that train.
    ///
    /// Not where adapters do.
    #[must_use]
    pub fn projecting(&self) -> u64 {
        let kept = self.kept.unwrap_or_default();
        let of = |trains, parameters| if trains { parameters } else { 0 };
        of(self.projector_trains, kept.projector).saturating_add(of(self.deep_trains, kept.deep_projector))
    }

    /// Whether weights of the projector train behind a tower that nothing passes back through: it is then an operator beside the
    /// word embedding.
    #[must_use]
    pub fn projects_alone(&self) -> bool {
        self.gradients == TowerGradients::None && (self.projector_trains || self.deep_trains)
    }
}
