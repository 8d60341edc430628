//! What trainers that write their own Llama-like layers have in common.

use shardscope_plan::Field;

/// The layer of Llama (arXiv 2302.13971, section 2.2, and 2307.09288): gated MLP, RMS norms before attention and MLP, rotary
/// positions, no biases, no dropout, an output layer of its own.
pub(super) const LLAMA_LAYER: [(Field, &str); 7] = [
    (Field::Swiglu, "true"),
    (Field::Normalization, "RMSNorm"),
    (Field::PositionEmbeddingType, "rope"),
    (Field::AddBiasLinear, "false"),
    (Field::UntieEmbeddingsAndOutputWeights, "true"),
    (Field::HiddenDropout, "0"),
    (Field::AttentionDropout, "0"),
];
