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

/// Inner widths beyond which a factor is not believed.
const WIDEST: f64 = (1_u64 << 40) as f64;

/// The inner width of a gated MLP as Llama's code works it out: two thirds of four times the width, times a factor, each cut to a
/// whole number, and up to a multiple (facebookresearch/llama, `llama/model.py`). None where the factor makes no width.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
pub(crate) fn inner_width(hidden: u64, factor: Option<f64>, multiple: u64) -> Option<u64> {
    let width = hidden.checked_mul(8)? / 3;
    let scaled = width as f64 * factor.unwrap_or(1.0);
    if !(1.0..=WIDEST).contains(&scaled) {
        return None;
    }
    (scaled as u64).checked_next_multiple_of(multiple)
}
