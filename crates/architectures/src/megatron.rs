//! What Megatron's layers count for a shape: the engine's own count, from the sizes alone.

use crate::shape::{Linear, Shape};

/// Parameters of a model of Megatron's layers with these sizes, padding of the vocabulary off, without
/// multi-token prediction. None where sizes are beyond counting.
pub(crate) fn parameters(shape: &Shape) -> Option<u64> {
    // 128 bits: products of three sizes of 64 bits cannot all overflow unnoticed before `try_from` at the end.
    let h = u128::from(shape.hidden);
    // Flags for biases of the QKV projection alone, or of all linear layers.
    // The attention output's bias has no flag of its own in Megatron.
    let [qkv, _, mlp] = shape.biases;
    let (qkv_bias, all_bias) = (u128::from(qkv), u128::from(qkv && mlp));
    let weights = u128::from(shape.norm_weights);
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
                // Down projection, its norm, up projection.
                Some(query) => h * query + query + query * heads * (plain + rotated),
                None => h * heads * (plain + rotated),
            };
            // The rotated part of a key is one for all heads, so it is projected once and not by the up projection.
            queries + h * (rank + rotated) + rank + rank * heads * (plain + value) + heads * value * h
        }
        None => {
            // A gate as wide as the queries comes from the same projection (Qwen3-Next).
            let queries = if shape.output_gate { 2 * heads } else { heads };
            let width = (queries + 2 * groups) * d;
            h * width + qkv_bias * width + heads * d * h + all_bias * h
        }
    };
    // Latent attention has the norms of its compressions counted above, and none per head.
    if shape.latent.is_none() {
        let normed = if shape.norms_over_heads { heads + groups } else { 2 };
        attention += if shape.query_key_norms { normed * d * weights } else { 0 };
    }
    attention += if shape.sinks { heads } else { 0 };
    let whole = shape.full.map_or(attention, |full| {
        let (width, groups) = (u128::from(full.width), u128::from(full.groups));
        let parts = if full.keys_as_values { 1 } else { 2 };
        let normed = if shape.query_key_norms { 2 * width * weights } else { 0 };
        h * (2 * heads + parts * groups) * width + normed
    });
    let linear = shape.linear.as_ref().map_or(0, |mixer| linear_mixer(mixer, h));
    let gate: u128 = if shape.gated { 2 } else { 1 };
    // Down projection and one or two up projections; biases as wide as what they are added to.
    let mlp = |width: u128| (gate + 1) * h * width + all_bias * (gate * width + h);
    // xIELU has two weights.
    let activation = if shape.activation == "xielu" { 2 } else { 0 };
    let dense = mlp(u128::from(shape.ffn)) + activation;
    let layers = u128::from(shape.layers);
    let (moe_layers, moe) = match &shape.routed {
        Some(routed) => {
            let experts = u128::from(routed.experts);
            let shared = match routed.shared_width {
                0 => 0,
                width => mlp(u128::from(width)) + if routed.shared_gate { h } else { 0 },
            };
            let routed_experts = match routed.latent.map(u128::from) {
                // Experts in a space of their own, with one projection into it and one out of it.
                Some(latent) => experts * (gate + 1) * latent * u128::from(routed.width) + 2 * h * latent,
                None => experts * mlp(u128::from(routed.width)),
            };
            // The router has a row for each expert.
            // A dense MLP beside them, three norms, and the router's weights.
            let beside = if routed.beside { dense + 4 * h + experts } else { 0 };
            let moe = h * experts + all_bias * experts + routed_experts + shared + beside;
            (routed.layers.iter().filter(|moe| **moe).count() as u128, moe)
        }
        None => (0, 0),
    };
    // Tied, the output layer is the word embedding.
    let ends = u128::from(shape.vocabulary) * h * if shape.tied { 1 } else { 2 };
    let positions = u128::from(shape.positions) * h;
    let all = match &shape.blocks {
        // One block and one norm a layer.
        Some(blocks) => blocks.chars().fold(0, |all, sign| {
            all + norm
                + match sign {
                    'M' => linear,
                    '*' => attention,
                    'E' => moe,
                    _ => dense,
                }
        }),
        None => {
            let mixers = shape.mixers.chars().fold(0, |all, sign| {
                all + match sign {
                    'M' => linear,
                    // `P` has both side by side.
                    'P' => linear + attention,
                    '*' => whole,
                    // Queries and output alone.
                    'A' | 'W' => {
                        let width =
                            shape.full.filter(|_| sign == 'A').map_or(d, |full| u128::from(full.width));
                        let normed = if shape.query_key_norms { width * weights } else { 0 };
                        2 * h * heads * width + normed
                    }
                    _ => attention,
                }
            });
            let borrowed = shape.mixers.chars().filter(|sign| matches!(sign, 'A' | 'W')).count() as u128;
            let wider = if shape.double_wide { borrowed * mlp(u128::from(shape.ffn)) } else { 0 };
            // Gate, projection and norm in each layer; the table, one projection and one norm for all.
            let inputs = shape.layer_inputs.map_or(0, |(width, vocabulary)| {
                let (width, vocabulary) = (u128::from(width), u128::from(vocabulary));
                layers * (2 * h * width + h) + (vocabulary + h) * layers * width + width
            });
            mixers + layers * norms * norm + moe_layers * moe + (layers - moe_layers) * dense + wider + inputs
        }
    };
    // As many heads and the same MLP in layers of the encoder, a second attention in those of the decoder, a norm before each, and
    // two tables of distances.
    let encoder = shape.encoder.map_or(0, |encoder| {
        let (depth, distances) = (u128::from(encoder.layers), u128::from(encoder.buckets) * heads);
        depth * (attention + dense + 2 * norm) + norm + layers * (attention + norm) + 2 * distances
    });
    u64::try_from(all + norm + ends + positions + encoder).ok()
}

/// Parameters of a linear mixer in layers of width `h`.
fn linear_mixer(mixer: &Linear, h: u128) -> u128 {
    let of = u128::from;
    let (heads, key_width, value_width) = (of(mixer.value_heads), of(mixer.key_width), of(mixer.value_width));
    let (keys, values, rank) = (of(mixer.key_heads) * key_width, heads * value_width, of(mixer.rank));
    let bias = |name: &str, width: u128| if mixer.biases.iter().any(|bias| bias == name) { width } else { 0 };
    let convolved = 2 * keys + values;
    let convolution = |width: u128| width * of(mixer.convolution) + bias("conv1d", width);
    let output = values * h + bias("out_proj", h);
    let norm = |width: u128| if mixer.norm { width } else { 0 };
    match mixer.kind.as_str() {
        "mamba" => {
            // Delta's rank, B and C.
            let small = rank + 2 * key_width;
            let projections =
                // In, then x_proj, then dt_proj with its bias.
                2 * h * values + bias("in_proj", 2 * values) + values * small + rank * values + values;
            // A is values x state, D one for each value.
            projections + convolution(values) + values * key_width + values + output + norm(small)
        }
        "mamba2" => {
            // Gate and values, B and C, and dt of each head.
            let projected = 2 * values + 2 * keys + heads;
            let projection = h * projected + bias("in_proj", projected);
            // A, D and the bias of dt: one each for every head.
            projection + convolution(convolved) + 3 * heads + norm(values) + output
        }
        "short_convolution" => {
            let projected = 2 * keys + values;
            h * projected + bias("in_proj", projected) + convolution(values) + output
        }
        "kimi_delta_attention" => {
            let decay = heads * key_width;
            // Two low-rank pairs: decay and output gate.
            let low = 2 * h * rank + rank * (decay + values);
            h * (convolved + heads) + low + convolution(convolved) + heads + decay + value_width + output
        }
        _ => {
            // Queries and keys, values and gate, beta and decay of each head (Qwen3-Next's Gated DeltaNet).
            let projection = h * (2 * keys + 2 * values + 2 * heads);
            projection + convolution(convolved) + 2 * heads + value_width + output
        }
    }
}
