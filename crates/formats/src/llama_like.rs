//! Properties shared by trainers that write their own Llama-like layers.

use shardscope_plan::Field;

/// The layer of Llama (arXiv 2302.13971, section 2.2, and 2307.09288): gated MLP, RMS norms before attention and MLP,
/// RoPE, no biases, no dropout, an untied output layer.
pub(super) const LLAMA_LAYER: [(Field, &str); 7] = [
    (Field::Swiglu, "true"),
    (Field::Normalization, "RMSNorm"),
    (Field::PositionEmbeddingType, "rope"),
    (Field::AddBiasLinear, "false"),
    (Field::UntieEmbeddingsAndOutputWeights, "true"),
    (Field::HiddenDropout, "0"),
    (Field::AttentionDropout, "0"),
];

/// Widest inner width that is accepted.
const WIDEST: f64 = (1_u64 << 40) as f64;

/// The inner width of a gated MLP as Llama's code computes it: two thirds of four times the width, times a factor,
/// each truncated to an integer, then rounded up to a multiple (facebookresearch/llama, `llama/model.py`). `None` if
/// the factor yields no valid width.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
pub(crate) fn inner_width(hidden: u64, factor: Option<f64>, multiple: u64) -> Option<u64> {
    let width = hidden.checked_mul(8)? / 3;
    let scaled = width as f64 * factor.unwrap_or(1.0);
    if !(1.0..=WIDEST).contains(&scaled) {
        return None;
    }
    (scaled as u64).checked_next_multiple_of(multiple)
}
