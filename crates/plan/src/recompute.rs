//! Which activations are computed again in the backward pass.

/// Recomputation (`--recompute-granularity` and its companions).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recompute {
    /// Everything is kept.
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
}

impl Recompute {
    /// Whether `module` is recomputed selectively.
    #[must_use]
    pub fn recomputes(&self, module: RecomputeModule) -> bool {
        matches!(self, Self::Selective(modules) if modules.contains(&module))
    }
}

/// `--recompute-modules`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecomputeModule {
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
