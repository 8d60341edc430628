//! The operators of a transformer.

use crate::Symbols;
use shardscope_plan::{GraphModules, LinearKind, OffloadModule};

/// A piece of a transformer with its own weights, saved tensors, arithmetic and messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// Word and position embedding with their dropout.
    Embedding,
    /// A layer of a frozen vision tower.
    VisionLayer,
    /// What a vision tower has outside of its layers, and its projector.
    VisionEnds,
    /// The projector of images onto the decoder's width, if it trains.
    Projector,
    /// Norm before attention.
    InputNorm,
    /// Self-attention with its projections, including its residual addition.
    SelfAttention,
    /// Self-attention to a window or a chunk of the sequence.
    WindowedAttention,
    /// Self-attention to the whole sequence with an earlier layer's keys and values.
    BorrowedAttention,
    /// The same to a window.
    BorrowedWindowedAttention,
    /// Multi-latent attention, including its residual addition.
    LatentAttention,
    /// Linear attention or a state-space mixer, including its residual addition.
    Linear(LinearKind),
    /// Norm before a dense MLP.
    PreMlpNorm,
    /// Norm before routed experts, which Transformer Engine runs by itself.
    PreExpertsNorm,
    /// Dense MLP, including its residual addition.
    Mlp,
    /// A dense MLP twice as wide as those of other layers.
    WideMlp,
    /// A part of the encoder; of its `first` layer, whose input requires a gradient only if something before it trains.
    Encoder {
        /// Which part.
        part: EncoderPart,
        /// Whether it is of the first layer.
        first: bool,
    },
    /// What layers of a stack look up of the distances between tokens, and whatever else they share.
    Positions,
    /// Norm before attention to the encoder's output.
    CrossNorm,
    /// Attention to the encoder's output with its projections, including its residual addition.
    CrossAttention,
    /// Embeddings of all layers' own: looked up, projected from the word embeddings and normed.
    LayerInputs,
    /// A layer's own embedding: gated, projected, normed, and added to the residual stream.
    LayerInput,
    /// Router, dispatcher, experts and shared experts, including the residual addition.
    Experts,
    /// Norm after the last layer.
    FinalNorm,
    /// Output layer and loss.
    OutputLayer,
    /// What a multi-token-prediction depth has in addition to its transformer layer.
    MtpProjection,
}

/// A part of an encoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EncoderPart {
    /// The look-up in the table that the decoder has.
    Embedding,
    /// What its layers look up of distances between tokens.
    Positions,
    /// Norm before attention.
    InputNorm,
    /// Self-attention.
    Attention,
    /// Norm before the MLP.
    PreMlpNorm,
    /// Dense MLP.
    Mlp,
    /// Norm after the last layer.
    FinalNorm,
}

/// What of an operator graphs of its layer capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Captured {
    /// Nothing: the host issues its kernels one by one.
    Nothing,
    /// What comes before tokens are dispatched to experts ([`Operator::routing`]).
    Routing,
    /// All of it.
    Whole,
}

impl Operator {
    /// The decoder's operator that runs the same modules, where that is another one: what differs then are the sizes
    /// ([`Symbols::of`]).
    #[must_use]
    pub(crate) const fn usual(self) -> Self {
        match self {
            Self::Encoder { part, .. } => match part {
                EncoderPart::Embedding => Self::Embedding,
                EncoderPart::Positions => Self::Positions,
                EncoderPart::InputNorm => Self::InputNorm,
                EncoderPart::Attention => Self::SelfAttention,
                EncoderPart::PreMlpNorm => Self::PreMlpNorm,
                EncoderPart::Mlp => Self::Mlp,
                EncoderPart::FinalNorm => Self::FinalNorm,
            },
            Self::CrossNorm => Self::PreMlpNorm,
            Self::CrossAttention => Self::SelfAttention,
            other => other,
        }
    }

    /// What graphs of `modules` of a layer capture of it (`megatron/core/transformer/transformer_layer.py`). What lies between
    /// layers and at the ends is in none.
    #[must_use]
    pub fn captured(self, x: &Symbols<'_>, modules: GraphModules) -> Captured {
        let whole = match self {
            Self::InputNorm => modules.attention || modules.mixer,
            Self::SelfAttention
            | Self::WindowedAttention
            | Self::BorrowedAttention
            | Self::BorrowedWindowedAttention
            | Self::LatentAttention => modules.attention,
            Self::Linear(LinearKind::Mamba | LinearKind::Mamba2) => modules.mixer,
            Self::Linear(_) => modules.attention,
            Self::PreMlpNorm | Self::Mlp | Self::WideMlp | Self::LayerInput => modules.mlp,
            Self::PreExpertsNorm => modules.experts || modules.router,
            Self::Experts => modules.experts && !self.reads_back(x),
            Self::Embedding
            | Self::LayerInputs
            | Self::VisionLayer
            | Self::VisionEnds
            | Self::Projector
            | Self::FinalNorm
            | Self::OutputLayer
            | Self::Encoder { .. }
            | Self::Positions
            | Self::CrossNorm
            | Self::CrossAttention
            | Self::MtpProjection => false,
        };
        match self {
            _ if whole => Captured::Whole,
            Self::Experts if modules.router => Captured::Routing,
            _ => Captured::Nothing,
        }
    }

    /// Whether the host reads back from the device before it can issue the rest: the tokens of each expert, where their
    /// number is not the capacity (`token_dispatcher.py:_maybe_dtoh_and_synchronize`: not under `drop_and_pad`).
    #[must_use]
    pub fn reads_back(self, x: &Symbols<'_>) -> bool {
        self == Self::Experts && !x.recipe().moe.pad_to_capacity
    }

    /// Whether it reads the residual stream itself.
    #[must_use]
    pub const fn reads_stream(self) -> bool {
        matches!(self.usual(), Self::InputNorm | Self::PreMlpNorm | Self::PreExpertsNorm | Self::FinalNorm)
    }

    /// Whether it adds to the residual stream: its sum is a new tensor, and the previous one is freed unless
    /// something saves it.
    #[must_use]
    pub const fn adds_to_stream(self) -> bool {
        matches!(
            self.usual(),
            Self::SelfAttention
                | Self::WindowedAttention
                | Self::BorrowedAttention
                | Self::BorrowedWindowedAttention
                | Self::LatentAttention
                | Self::Linear(_)
                | Self::Mlp
                | Self::WideMlp
                | Self::LayerInput
                | Self::Experts
        )
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
            Self::BorrowedAttention => "borrowing_attention",
            Self::BorrowedWindowedAttention => "borrowing_windowed_attention",
            Self::LatentAttention => "multi_latent_attention",
            Self::Linear(kind) => kind.name(),
            Self::PreMlpNorm | Self::PreExpertsNorm => "pre_mlp_layernorm",
            Self::Mlp | Self::WideMlp => "mlp",
            Self::Encoder { part, .. } => match part {
                EncoderPart::Embedding => "encoder_embedding",
                EncoderPart::Positions => "encoder_relative_positions",
                EncoderPart::InputNorm => "encoder_input_layernorm",
                EncoderPart::Attention => "encoder_self_attention",
                EncoderPart::PreMlpNorm => "encoder_pre_mlp_layernorm",
                EncoderPart::Mlp => "encoder_mlp",
                EncoderPart::FinalNorm => "encoder_final_layernorm",
            },
            Self::Positions => "relative_positions",
            Self::CrossNorm => "pre_cross_attention_layernorm",
            Self::CrossAttention => "cross_attention",
            Self::LayerInputs => "per_layer_inputs",
            Self::LayerInput => "per_layer_input",
            Self::Experts => "moe",
            Self::FinalNorm => "final_layernorm",
            Self::OutputLayer => "output_layer",
            Self::MtpProjection => "mtp_projection",
        }
    }
}
