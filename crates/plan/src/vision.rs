//! The vision tower attached to a decoder.

use super::number::NumberFormat;

/// A vision tower and the projector of its output onto the decoder's width.
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
    /// Number format of its weights; `None` means the model's.
    pub dtype: Option<NumberFormat>,
    /// The projector, if it trains after a frozen tower.
    pub projector: Option<Projector>,
    /// Which parts of the tower have gradients, apart from mergers and a projector that is not separate.
    pub gradients: TowerGradients,
    /// Whether the weights of a projector that is not separate train, or, if the tower has adapters, the projector's
    /// adapters.
    pub projector_trains: bool,
    /// Whether the weights of the deepstack mergers, or their adapters, train (Qwen3-VL).
    pub deep_trains: bool,
    /// What it saves for backward, if that is known and any part of it has gradients.
    pub kept: Option<VisionKept>,
    /// Which of its norms are Liger's.
    pub liger: TowerLiger,
    /// Whether its layers are recomputed if the decoder's are.
    pub recomputed: bool,
    /// Total patches of all images in a sample, if known.
    pub image_patches: Option<u64>,
    /// Whose modules it is made of.
    pub modules: TowerModules,
    /// Whether the engine for rollouts alone has it: what trains is the decoder by itself.
    pub in_engine_alone: bool,
    /// Whether its configuration is made from the decoder's, fp8 included (mbridge's); else its layers stay in 16 bits beside whatever
    /// decoder (`modelling_qwen3_vl/transformer_config.py:get_vision_model_config` of Megatron-Bridge).
    pub follows_formats: bool,
}

/// Whose modules a vision tower is made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TowerModules {
    /// Those of the software that trains.
    #[default]
    Own,
    /// transformers' beside a decoder of Megatron core: every tensor rank of the first stage holds it whole.
    Whole,
    /// Layers of Megatron core, cut over tensor ranks and not along the sequence (Qwen3-VL in Megatron-Bridge and mbridge).
    Core,
}

impl TowerModules {
    /// Whether the decoder beside it is Megatron core's, which puts images between the words of the whole sequence.
    #[must_use]
    pub const fn is_beside_core(self) -> bool {
        matches!(self, Self::Whole | Self::Core)
    }
}

/// What of a vision tower has gradients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TowerGradients {
    /// None: it is frozen, and its forward pass saves nothing.
    #[default]
    None,
    /// Only its activations: weights are frozen, but the patch embedding's output is made to require a gradient
    /// (`enable_input_require_grads` of transformers 5).
    Through,
    /// Adapters on the linear layers of its layers, and all activations.
    Adapted,
    /// Its weights and all activations.
    Trained,
}

/// Which norms of a tower Liger's kernels replace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TowerLiger {
    /// None.
    #[default]
    None,
    /// Those of its layers: an already built model is patched.
    Layers,
    /// All norms of their class, including the projector's: the class is patched before a model is built.
    Class,
}

/// What a tower saves for backward: the kinds of modules in its layers and their sizes, as the rules for its model
/// type state them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VisionKept {
    /// Attention heads.
    pub heads: u64,
    /// Width of a layer's MLP.
    pub ffn: u64,
    /// Tokens before each image's patches.
    pub prefix: u64,
    /// Patches of one image, if that is fixed; otherwise 0.
    pub image: u64,
    /// Side of a patch, in pixels.
    pub patch: u64,
    /// Values of a patch that goes in, of all channels and frames, where its layers in Megatron core are known; else 0.
    pub patch_values: u64,
    /// Outside of the layers, of each token that the decoder gets: bytes where all trains.
    pub ends: u64,
    /// The same if gradients only flow through.
    pub ends_through: u64,
    /// What LayerNorms in fp32 among operations in 16 bits add to both.
    pub ends_wide: u64,
    /// Outside of the layers, bytes saved once if everything trains.
    pub once: u64,
    /// The same if gradients only flow through.
    pub once_through: u64,
    /// What LayerNorms in fp32 add to both.
    pub once_wide: u64,
    /// What the projector saves less if it uses Liger's norm and everything trains, with norms in 16 bits.
    pub ends_liger: u64,
    /// Parameters of a layer that a rollout engine shards over its tensor ranks; 0 if unknown.
    pub cut_layer: u64,
    /// The same outside of the layers.
    pub cut_ends: u64,
    /// Parameters of the projector, without deepstack mergers.
    pub projector: u64,
    /// The part of what is saved outside of the layers that belongs to a projector training after a frozen tower.
    pub merge: Kept,
    /// What a projector saves in addition if its weights train, compared with gradients only flowing through it.
    pub merge_more: u64,
    /// Widths of the projector's linear layers, starting with the first one's input; 0 after the last.
    pub widths: [u64; 4],
    /// Deepstack mergers.
    pub deep_mergers: u64,
    /// Parameters of the deepstack mergers.
    pub deep_projector: u64,
    /// What those mergers save if they train after a frozen tower.
    pub deep: Kept,
    /// What they save in addition if their weights train.
    pub deep_more: u64,
    /// Whether queries, keys and values come from one projection, with the values a view of its output.
    pub fused_queries: bool,
    /// Whether images attend one by one and their outputs are concatenated (a copy), unless one kernel processes them
    /// all (flash attention).
    pub joined_output: bool,
    /// Whether norms are RMSNorms written in Python rather than LayerNorms.
    pub rms_norms: bool,
    /// Whether queries and keys have norms of that kind over all heads.
    pub query_norms: bool,
    /// Whether its attention knows flash attention and scores written out alone (`modeling_intern_vit.py`).
    pub flash_alone: bool,
    /// Whether one image of a sample may be cut into several of the tower's, of [`Self::image`] patches each.
    pub tiled: bool,
    /// Whether the MLP is gated.
    pub gated: bool,
    /// Whether attention has a mask of all patches of a micro-batch, unless one kernel handles the images separately
    /// (flash attention).
    pub masked: bool,
    /// Whether Liger has kernels for norms of its layers; `None` if that is not known.
    pub liger: Option<bool>,
    /// Whether the activation is x · sigmoid(1.702 x).
    pub quick_gelu: bool,
    /// Whether what attention and MLP add to the residual stream is multiplied by weights (layer scale).
    pub scaled: bool,
    /// Whether transformers names its layers among those that must not be split (`_no_split_modules`).
    pub unsplit: bool,
    /// Whether Automodel has its own class for the complete model.
    pub own_in_automodel: bool,
    /// Whether Megatron-Bridge builds it of transformers' modules, whole on every tensor rank of the first stage
    /// (`models/qwen_vl/modeling_qwen25_vl.py`, `models/ministral3/modeling_ministral3.py`).
    pub whole_in_bridge: bool,
    /// The fp32 rotary tables among what is saved outside of the layers, in bytes per patch: a layer that casts its
    /// inputs saves its own copy.
    pub tables: u64,
    /// What the projector saves in addition per token if layers output fp32 and everything trains.
    pub ends_after_wide: u64,
}

/// Bytes saved outside of the layers.
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
    /// Parses these words; `None` if one is not known.
    #[must_use]
    pub fn named(words: &[&str]) -> Option<Self> {
        let mut kept = Self::default();
        for word in words {
            match *word {
                "fused_queries" => kept.fused_queries = true,
                "joined_output" => kept.joined_output = true,
                "rms_norms" => kept.rms_norms = true,
                "query_norms" => kept.query_norms = true,
                "flash_alone" => kept.flash_alone = true,
                "tiled" => kept.tiled = true,
                "gated" => kept.gated = true,
                "masked" => kept.masked = true,
                "liger_norms" => kept.liger = Some(true),
                "without_liger" => kept.liger = Some(false),
                "quick_gelu" => kept.quick_gelu = true,
                "scaled" => kept.scaled = true,
                "unsplit" => kept.unsplit = true,
                "own_in_automodel" => kept.own_in_automodel = true,
                "whole_in_bridge" => kept.whole_in_bridge = true,
                word => kept.size(word)?,
            }
        }
        // Without these two, nothing in a layer can be counted.
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
            "patch_values" => &mut self.patch_values,
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
        // Bounded here because these sizes are words of one setting and have no bounds of their own.
        *size = number.parse().ok().filter(|size| *size <= MAX_KEPT)?;
        Some(())
    }
}

/// The largest accepted size among a tower's saved tensors: bytes per image token, or bytes saved once.
const MAX_KEPT: u64 = 1 << 32;

/// A projector that trains after a frozen tower (`llava/model/multimodal_projector/builder.py`): linear layers with a
/// bias, a GELU between two of them, the first from the tower's width and all onto the decoder's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Projector {
    /// Linear layers.
    pub layers: u64,
    /// Patches of the one image that each sample has; each becomes a token.
    pub patches: u64,
    /// Tokens that the tower puts before them, which are left out.
    pub before: u64,
}

impl Projector {
    /// Its parameters for these widths.
    #[must_use]
    pub const fn parameters(&self, tower: u64, decoder: u64) -> u64 {
        // Each has a bias, hence the extra row.
        let behind = self.layers.saturating_sub(1);
        (tower + 1)
            .saturating_mul(decoder)
            .saturating_add(behind.saturating_mul(decoder + 1).saturating_mul(decoder))
    }
}

impl VisionTower {
    /// Parameters outside of its layers: the patch embedding, norms and the projector, frozen or not.
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

    /// Whether the projector's weights train after a tower through which no gradients flow: it is then an operator
    /// next to the word embedding.
    #[must_use]
    pub fn projects_alone(&self) -> bool {
        self.gradients == TowerGradients::None && (self.projector_trains || self.deep_trains)
    }
}
