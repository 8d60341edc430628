//! The operators and their facets: the one place that knows every kind.

use super::{
    Held, Message, Saved, Symbols, Weight, Work, attention, embedding, experts, latent_attention, mlp, mtp,
    norm, output_layer,
};

/// A piece of a transformer with weights, kept tensors, arithmetic and messages of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// Word and position embedding with their dropout.
    Embedding,
    /// Norm before attention.
    InputNorm,
    /// Self-attention with its projections, its residual addition included.
    SelfAttention,
    /// Multi-latent attention, its residual addition included.
    LatentAttention,
    /// Norm before the MLP.
    PreMlpNorm,
    /// Dense MLP, its residual addition included.
    Mlp,
    /// Router, dispatcher, experts and shared experts, the residual addition included.
    Experts,
    /// Norm after the last layer.
    FinalNorm,
    /// Output layer and loss.
    OutputLayer,
    /// What a multi-token-prediction depth has beside its transformer layer.
    MtpProjection,
}

macro_rules! facet {
    ($(#[$doc:meta])* $name:ident -> $item:ty) => {
        $(#[$doc])*
        #[must_use]
        pub fn $name(self, x: &Symbols<'_>) -> Vec<$item> {
            match self {
                Self::Embedding => embedding::$name(x),
                Self::InputNorm | Self::PreMlpNorm | Self::FinalNorm => norm::$name(self, x),
                Self::SelfAttention => attention::$name(x),
                Self::LatentAttention => latent_attention::$name(x),
                Self::Mlp => mlp::$name(x),
                Self::Experts => experts::$name(x),
                Self::OutputLayer => output_layer::$name(x),
                Self::MtpProjection => mtp::$name(x),
            }
        }
    };
}

impl Operator {
    /// The name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Embedding => "embedding",
            Self::InputNorm => "input_layernorm",
            Self::SelfAttention => "self_attention",
            Self::LatentAttention => "multi_latent_attention",
            Self::PreMlpNorm => "pre_mlp_layernorm",
            Self::Mlp => "mlp",
            Self::Experts => "moe",
            Self::FinalNorm => "final_layernorm",
            Self::OutputLayer => "output_layer",
            Self::MtpProjection => "mtp_projection",
        }
    }

    facet!(
        /// Its weights, full and on one rank.
        weights -> Weight
    );
    facet!(
        /// What it keeps for backward for one micro-batch on one rank, recomputation of named modules
        /// counted in, whole-layer recomputation not.
        saved -> Saved
    );
    facet!(
        /// What its passes hold beside what forward keeps, at the points where they hold most.
        held -> Held
    );
    facet!(
        /// Its arithmetic for one micro-batch on one rank.
        work -> Work
    );
    facet!(
        /// What it sends for one micro-batch on one rank.
        messages -> Message
    );
}
