//! What sections are called in reports.

use super::{Pass, SectionKind};
use shardscope_plan::LayerKind;

/// The names of a section: by itself, and its place in each pass.
struct Names {
    alone: &'static str,
    forward: &'static str,
    backward: &'static str,
}

macro_rules! names {
    ($alone:literal, $place:literal) => {
        Names {
            alone: $alone,
            forward: concat!($place, ", forward"),
            backward: concat!($place, ", backward"),
        }
    };
}

/// By kind, in the order of [`LayerKind::ALL`].
const LAYERS: [Names; LayerKind::ALL.len()] = [
    names!("dense layer", "each dense layer"),
    names!("moe layer", "each MoE layer"),
    names!("attention layer", "each attention layer"),
    names!("dense layer with windowed attention", "each dense layer with windowed attention"),
    names!("moe layer with windowed attention", "each MoE layer with windowed attention"),
    names!("windowed attention layer", "each windowed attention layer"),
    names!("dense layer with linear attention", "each dense layer with linear attention"),
    names!("moe layer with linear attention", "each MoE layer with linear attention"),
    names!("linear attention layer", "each linear attention layer"),
    names!(
        "dense layer with attention and linear attention",
        "each dense layer with attention and linear attention"
    ),
    names!(
        "moe layer with attention and linear attention",
        "each MoE layer with attention and linear attention"
    ),
    names!("attention and linear attention layer", "each attention and linear attention layer"),
    names!("mlp layer", "each MLP layer"),
    names!("expert layer", "each expert layer"),
    names!("empty layer", "each empty layer"),
    names!("dense layer with borrowed keys and values", "each dense layer with borrowed keys and values"),
    names!("moe layer with borrowed keys and values", "each MoE layer with borrowed keys and values"),
    names!(
        "attention layer with borrowed keys and values",
        "each attention layer with borrowed keys and values"
    ),
    names!(
        "dense layer with windowed attention to borrowed keys and values",
        "each dense layer with windowed attention to borrowed keys and values"
    ),
    names!(
        "moe layer with windowed attention to borrowed keys and values",
        "each MoE layer with windowed attention to borrowed keys and values"
    ),
    names!(
        "windowed attention layer with borrowed keys and values",
        "each windowed attention layer with borrowed keys and values"
    ),
];
const EMBEDDING: Names = names!("embedding", "embedding");
const FINAL_NORM: Names = names!("final norm", "final norm");
const MTP_EMBEDDING: Names = names!("embedding for multi-token prediction", "embedding");
const MTP: Names = names!("multi-token prediction", "each multi-token-prediction depth");
const VISION_LAYER: Names = names!("vision layer", "each vision layer");
const VISION_ENDS: Names = names!("patch embedding and projector", "patch embedding and projector");
const ENCODER_LAYER: Names = names!("encoder layer", "each encoder layer");
const FIRST_ENCODER_LAYER: Names = names!("first encoder layer", "first encoder layer");
const ENCODER_ENDS: Names =
    names!("encoder's embedding, positions and final norm", "encoder's embedding, positions and final norm");
const OUTPUT_LAYER: Names = names!("output layer and loss", "output layer and loss");

impl SectionKind {
    const fn names(self) -> &'static Names {
        match self {
            Self::Embedding => &EMBEDDING,
            Self::Layer(kind) => &LAYERS[kind.index()],
            Self::FinalNorm => &FINAL_NORM,
            Self::MtpEmbedding => &MTP_EMBEDDING,
            Self::Mtp => &MTP,
            Self::OutputLayer => &OUTPUT_LAYER,
            Self::VisionLayer => &VISION_LAYER,
            Self::VisionEnds => &VISION_ENDS,
            Self::EncoderLayer => &ENCODER_LAYER,
            Self::FirstEncoderLayer => &FIRST_ENCODER_LAYER,
            Self::EncoderEnds => &ENCODER_ENDS,
        }
    }

    /// The name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.names().alone
    }

    /// Its place in a pass, in words.
    #[must_use]
    pub const fn in_pass(self, pass: Pass) -> &'static str {
        match pass {
            Pass::Forward => self.names().forward,
            Pass::Backward => self.names().backward,
        }
    }
}
