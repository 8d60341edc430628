//! The shape of a model, from what its type's rules make of a configuration.

use crate::evaluate::{Evaluation, Stop};
use crate::shape::{EncoderShape, Full, Latent, Linear, Routed, Shape};

/// The shape of a decoder of so many `layers`.
///
/// # Errors
/// A size that is missing or makes no sense.
pub(crate) fn shape(e: &Evaluation<'_>, layers: u64) -> Result<Shape, Stop> {
    let first = |name: &'static str| e.size_at(name, 0);
    let says = |name: &'static str| e.holds_at(name, 0);
    // Told by the rules, not by a key: configurations of other types have keys of latent attention too.
    let latent = if e.defines("kl") {
        let rank = first("ql_or_none")?;
        Some(Latent {
            query_rank: (rank > 0).then_some(rank),
            key_value_rank: first("kl")?,
            plain_width: first("dq")? - first("dr")?,
            rotated_width: first("dr")?,
            value_width: first("dv")?,
        })
    } else {
        None
    };
    let pattern = (0..layers).map(|index| e.holds_at("is_moe", index)).collect::<Result<Vec<_>, _>>()?;
    let first_moe = (0_u64..).zip(&pattern).find(|(_, moe)| **moe).map(|(index, _)| index);
    let routed = match first_moe {
        Some(index) => Some(Routed {
            experts: e.size_at("E", index)?,
            per_token: e.size_at("topk", index)?,
            width: e.size_at("fe", index)?,
            shared_width: e.size_at("fs", index)?,
            shared_gate: e.holds_at("shared_gate", index)?,
            latent: if e.defines("w") && e.defines("blocks") {
                Some(e.size_at("w", index)?).filter(|width| Some(*width) != e.size_at("h", index).ok())
            } else {
                None
            },
            layers: pattern,
            beside: e.holds("beside_dense")?,
        }),
        None => None,
    };
    let attending = e.size("attending")?;
    let windowed = e.size("windowed")?;
    let linear = e.words("linear")?.concat();
    let signs = (0..layers).map(|index| e.word_at("sign", index)).collect::<Result<String, _>>()?;
    let blocks = blocks(e, layers)?;
    Ok(Shape {
        layers,
        hidden: first("h")?,
        vocabulary: first("V")?,
        positions: first("position_rows")?,
        longest: e.size("longest").ok().filter(|tokens| *tokens > 0),
        heads: if attending == 0 { 0 } else { first("a")? },
        groups: if attending == 0 { 0 } else { first("k")? },
        head_width: if attending == 0 { 0 } else { first("d")? },
        // Types whose every layer is routed state no dense width; the expert's stands in for it.
        ffn: match (first("f"), &routed) {
            (Ok(width), _) => width,
            (Err(_), Some(routed)) => routed.width,
            (Err(stop), None) => {
                if says("no_mlp")? {
                    0
                } else {
                    return Err(stop);
                }
            }
        },
        gated: says("gated")?,
        activation: e.words("act")?.concat(),
        norm_weights: first("ln")?,
        layer_norms: says("layer_norms")?,
        norms: first("norms_per_layer")?,
        query_key_norms: first("qk_norm")? > 0,
        norms_over_heads: says("norms_over_heads")?,
        biases: [says("qkv_bias")?, says("o_bias")?, says("mlp_bias")?],
        sinks: first("sinks")? > 0,
        position: e.words("position")?.concat(),
        tied: e.holds("tied")?,
        latent,
        routed,
        mixers: signs,
        window: if windowed > 0 { Some((e.size("window")?, e.holds("chunked")?)) } else { None },
        linear: if linear.is_empty() { None } else { Some(linear_sizes(e, linear)?) },
        output_gate: says("output_gate")?,
        full: if e.defines("full_width") {
            Some(Full {
                groups: e.size("full_groups")?,
                width: e.size("full_width")?,
                keys_as_values: e.holds("keys_as_values")?,
            })
        } else {
            None
        },
        layer_inputs: match e.size("layer_inputs")? {
            0 => None,
            width => Some((width, e.size("layer_vocabulary")?)),
        },
        double_wide: e.holds("double_wide")?,
        encoder: match e.size("encoder_depth")? {
            0 => None,
            layers => Some(EncoderShape { layers, buckets: e.size("distances")? }),
        },
        blocks,
    })
}

fn linear_sizes(e: &Evaluation<'_>, kind: String) -> Result<Linear, Stop> {
    let mut biases = Vec::new();
    for name in ["in_bias", "conv_bias_too", "out_bias"] {
        if e.defines(name) {
            biases.extend(e.words(name)?);
        }
    }
    Ok(Linear {
        kind,
        key_heads: e.size("key_heads")?,
        value_heads: e.size("value_heads")?,
        key_width: e.size("key_width")?,
        value_width: e.size("value_width")?,
        convolution: e.size("convolution")?,
        rank: e.size("linear_rank")?,
        biases,
        norm: e.holds("linear_norm")?,
    })
}

/// The pattern of layers of one block each, in Megatron's signs, where the type has such layers.
fn blocks(e: &Evaluation<'_>, layers: u64) -> Result<Option<String>, Stop> {
    if !e.holds("blocks")? {
        return Ok(None);
    }
    let sign = |index| {
        let is = |name| e.holds_at(name, index);
        Ok(match () {
            // In this order: a layer that is none of these is a dense MLP.
            () if is("is_mamba")? => 'M',
            () if is("is_attention")? => '*',
            () if is("is_moe")? => 'E',
            () => '-',
        })
    };
    (0..layers).map(sign).collect::<Result<String, Stop>>().map(Some)
}
