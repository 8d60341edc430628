//! The operators of a transformer.

use crate::Symbols;
use shardscope_plan::{LinearKind, OffloadModule};

/// A piece of a transformer with weights, kept tensors, arithmetic and messages of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// Word and position embedding with their dropout.
    Embedding,
    /// A layer of a frozen vision tower.
    VisionLayer,
    /// What a vision tower has outside of its layers, and its projector.
    VisionEnds,
    /// What projects images onto the decoder's width, where it trains.
    Projector,
    /// Norm before attention.
    InputNorm,
    /// Self-attention with its projections, its residual addition included.
    SelfAttention,
    /// Self-attention to a window or a chunk of the sequence.
    WindowedAttention,
    /// Multi-latent attention, its residual addition included.
    LatentAttention,
    /// Linear attention or a state-space mixer, its residual addition included.
    Linear(LinearKind),
    /// Norm before a dense MLP.
    PreMlpNorm,
    /// Norm before routed experts, which Transformer Engine runs by itself.
    PreExpertsNorm,
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

impl Operator {
    /// Whether the host reads back from the device before it can issue the rest: the tokens of each expert, where their
    /// number is not the capacity (`token_dispatcher.py:_maybe_dtoh_and_synchronize`: not under `drop_and_pad`).
    #[must_use]
    pub fn reads_back(self, x: &Symbols<'_>) -> bool {
        self == Self::Experts && !x.recipe().moe.pad_to_capacity
    }

    /// Its modules that Megatron can offload.
    #[must_use]
    pub const fn modules(self) -> &'static [OffloadModule] {
        use OffloadModule::{
            AttentionNorm, AttentionProjection, CoreAttention, ExpertsFc1, MlpNorm, MoeActivation, QkvLinear,
        };
        match self {
            Self::InputNorm => &[AttentionNorm],
            Self::SelfAttention | Self::WindowedAttention | Self::LatentAttention => {
                &[QkvLinear, CoreAttention, AttentionProjection]
            }
            Self::PreMlpNorm | Self::PreExpertsNorm => &[MlpNorm],
            Self::Experts => &[ExpertsFc1, MoeActivation],
            _ => &[],
        }
    }

    /// The name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Embedding => "embedding",
            Self::VisionLayer => "vision_layer",
            Self::VisionEnds => "vision_ends",
            Self::Projector => "projector",
            Self::InputNorm => "input_layernorm",
            Self::SelfAttention => "self_attention",
            Self::WindowedAttention => "windowed_attention",
            Self::LatentAttention => "multi_latent_attention",
            Self::Linear(kind) => kind.name(),
            Self::PreMlpNorm | Self::PreExpertsNorm => "pre_mlp_layernorm",
            Self::Mlp => "mlp",
            Self::Experts => "moe",
            Self::FinalNorm => "final_layernorm",
            Self::OutputLayer => "output_layer",
            Self::MtpProjection => "mtp_projection",
        }
    }
}
