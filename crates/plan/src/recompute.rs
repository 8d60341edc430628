//! Which activations are recomputed in the backward pass.

use std::ops::Range;

/// Recomputation (`--recompute-granularity` and its companions).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recompute {
    /// Everything is saved.
    None,
    /// Named modules of every layer.
    Selective(Vec<RecomputeModule>),
    /// Units of `num_layers` whole layers (`--recompute-method uniform`).
    Uniform {
        /// Layers of one unit.
        num_layers: u64,
        /// `--distribute-saved-activations`.
        distribute: bool,
    },
    /// The first `num_layers` layers of each chunk (`--recompute-method block`).
    Block {
        /// Layers recomputed per chunk.
        num_layers: u64,
        /// `--distribute-saved-activations`.
        distribute: bool,
    },
    /// Whole layers at a regular interval (OLMo's `one_in_four`).
    Every {
        /// Layers per period; the first of each is chosen.
        period: u64,
        /// Whether the chosen layers are saved and all others recomputed (OLMo's `three_in_four`).
        others: bool,
    },
}

impl Recompute {
    /// Whether `module` is recomputed selectively.
    #[must_use]
    pub fn recomputes(&self, module: RecomputeModule) -> bool {
        matches!(self, Self::Selective(modules) if modules.contains(&module))
    }

    /// Whether layer `index` of the model, which is in the chunk of `layers`, is recomputed as a whole.
    #[must_use]
    pub fn recomputes_layer(&self, index: u64, layers: &Range<u64>) -> bool {
        match self {
            Self::None | Self::Selective(_) => false,
            Self::Uniform { .. } => true,
            // Counted from the chunk's own first layer: each virtual stage is a `TransformerBlock`, which knows its own layers only.
            Self::Block { num_layers, .. } => index.saturating_sub(layers.start) < *num_layers,
            // Counted over the model, not over the chunk: OLMo's layers know their own number.
            Self::Every { period, others } => index.is_multiple_of((*period).max(1)) != *others,
        }
    }

    /// How many of `layers` layers of a chunk are recomputed as a whole.
    #[must_use]
    pub fn whole_layers(&self, layers: &Range<u64>) -> u64 {
        let all = layers.end.saturating_sub(layers.start);
        match self {
            Self::None | Self::Selective(_) => 0,
            Self::Uniform { .. } => all,
            // A chunk with fewer layers than requested recomputes all of them.
            Self::Block { num_layers, .. } => all.min(*num_layers),
            Self::Every { period, others } => {
                // Multiples of the period below a layer; the chunk's count is a difference of two.
                let below = |end: u64| end.div_ceil((*period).max(1));
                let first = below(layers.end).saturating_sub(below(layers.start));
                if *others { all.saturating_sub(first) } else { first }
            }
        }
    }

    /// Whether layers are recomputed as a whole, all or some of them.
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        matches!(self, Self::Uniform { .. } | Self::Block { .. } | Self::Every { .. })
    }
}

/// `--recompute-modules`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecomputeModule {
    /// Attention as one module of plain PyTorch, its projections included.
    Attention,
    /// Scores, softmax, dropout and values.
    CoreAttention,
    /// Activation of the experts.
    MoeActivation,
    /// Input and pre-MLP norms.
    LayerNorm,
    /// MLA's up-projections.
    MlaUpProjection,
    /// A dense MLP.
    Mlp,
    /// A whole MoE layer.
    Moe,
    /// Shared experts.
    SharedExperts,
}
