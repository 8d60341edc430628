//! The operators and their facets: the one place that knows every kind.

use super::{
    Held, Message, Saved, Symbols, Weight, Work, adapters, attention, eager, embedding, experts,
    latent_attention, mlp, mtp, norm, output_layer, sampled,
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

/// The facet `$name` of the operator that `$operator` is.
macro_rules! facet {
    ($operator:ident, $name:ident, $x:ident) => {
        match $operator {
            Self::Embedding => embedding::$name($x),
            Self::InputNorm | Self::PreMlpNorm | Self::FinalNorm => norm::$name($operator, $x),
            Self::SelfAttention => attention::$name($x),
            Self::LatentAttention => latent_attention::$name($x),
            Self::Mlp => mlp::$name($x),
            Self::Experts => experts::$name($x),
            Self::OutputLayer => output_layer::$name($x),
            Self::MtpProjection => mtp::$name($x),
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

    /// Its weights, full and on one rank.
    #[must_use]
    pub fn weights(self, x: &Symbols<'_>) -> Vec<Weight> {
        let mut weights = facet!(self, weights, x);
        adapters::adapt(self, x, &mut weights);
        weights
    }

    /// What it keeps for backward for one micro-batch on one rank, recomputation within a layer counted in,
    /// whole-layer recomputation not.
    #[must_use]
    pub fn saved(self, x: &Symbols<'_>) -> Vec<Saved> {
        sampled::saved(self, x).or_else(|| eager::saved(self, x)).unwrap_or_else(|| facet!(self, saved, x))
    }

    /// What its passes hold beside what forward keeps, at the points where they hold most.
    #[must_use]
    pub fn held(self, x: &Symbols<'_>) -> Vec<Held> {
        eager::held(self, x).unwrap_or_else(|| facet!(self, held, x))
    }

    /// Its arithmetic for one micro-batch on one rank.
    #[must_use]
    pub fn work(self, x: &Symbols<'_>) -> Vec<Work> {
        let mut work = facet!(self, work, x);
        adapters::adapt_work(self, x, &mut work);
        work
    }

    /// What it sends for one micro-batch on one rank.
    #[must_use]
    pub fn messages(self, x: &Symbols<'_>) -> Vec<Message> {
        facet!(self, messages, x)
    }
}
