//! What Megatron's layers count for a shape: the engine's own count, from the sizes alone.

use crate::shape::Shape;

/// Parameters of a model of Megatron's layers with these sizes, padding of the vocabulary off, without
/// multi-token prediction. None where sizes are beyond counting.
pub(crate) fn parameters(shape: &Shape) -> Option<u64> {
    let h = u128::from(shape.hidden);
    // Flags for biases of the QKV projection alone, or of all linear layers.
    let [qkv, _, mlp] = shape.biases;
    let (qkv_bias, all_bias) = (u128::from(qkv), u128::from(qkv && mlp));
    // Megatron has RMS norms and layer norms, both with weights.
    let weights: u128 = if shape.norm_weights == 1 { 1 } else { 2 };
    let norm = h * weights;
    // Two before attention and MLP, two behind them where there are any.
    let norms: u128 = if shape.norms > 2 { 4 } else { 2 };
    let (heads, groups, d) =
        (u128::from(shape.heads), u128::from(shape.groups), u128::from(shape.head_width));
    let mut attention = match shape.latent {
        Some(latent) => {
            let (plain, rotated) = (u128::from(latent.plain_width), u128::from(latent.rotated_width));
            let (rank, value) = (u128::from(latent.key_value_rank), u128::from(latent.value_width));
            let queries = match latent.query_rank.map(u128::from) {
                Some(query) => h * query + query + query * heads * (plain + rotated),
                None => h * heads * (plain + rotated),
            };
            queries + h * (rank + rotated) + rank + rank * heads * (plain + value) + heads * value * h
        }
        None => {
            let width = (heads + 2 * groups) * d;
            h * width + qkv_bias * width + heads * d * h + all_bias * h
        }
    };
    if shape.latent.is_none() {
        attention += if shape.query_key_norms { 2 * d * weights } else { 0 };
    }
    attention += if shape.sinks { heads } else { 0 };
    let gate: u128 = if shape.gated { 2 } else { 1 };
    let mlp = |width: u128| (gate + 1) * h * width + all_bias * (gate * width + h);
    let dense = mlp(u128::from(shape.ffn));
    let layers = u128::from(shape.layers);
    let (moe_layers, moe) = match &shape.routed {
        Some(routed) => {
            let experts = u128::from(routed.experts);
            let shared = match routed.shared_width {
                0 => 0,
                width => mlp(u128::from(width)) + if routed.shared_gate { h } else { 0 },
            };
            let moe = h * experts + experts * mlp(u128::from(routed.width)) + shared;
            (routed.layers.iter().filter(|moe| **moe).count() as u128, moe)
        }
        None => (0, 0),
    };
    let ends = u128::from(shape.vocabulary) * h * if shape.tied { 1 } else { 2 };
    let positions = u128::from(shape.positions) * h;
    let all = layers * (attention + norms * norm) + moe_layers * moe + (layers - moe_layers) * dense;
    u64::try_from(all + norm + ends + positions).ok()
}
