//! `ModelConfig`: shape, norms, MLP and attention.

use super::stated::{DEFAULT, lack, lack_default, stated};
use crate::leaves::{Leaf, Leaves};
use crate::{Effect, Origin};
use shardscope_plan::Field;

/// Switches that change a figure and have no formula when they are on.
const LACKING: &[(&str, Effect, &str)] = &[
    ("model.alibi", Effect::Memory, "ALiBi biases in OLMo's layers"),
    ("model.embedding_layer_norm", Effect::Memory, "a norm after OLMo's embedding"),
    ("model.scale_logits", Effect::Memory, "logits that OLMo scales in place"),
    ("data.generate_attention_mask", Effect::Memory, "an attention mask, which flash-attn does not accept"),
    ("data.generate_doc_lengths", Effect::Time, "document masking, with document lengths that are unknown"),
];

/// Numbers that change a figure and have no formula unless they have this value.
const ONLY: &[(&str, u64, Effect, &str)] = &[
    ("model.attention_dropout", 0, Effect::Memory, "dropout in OLMo's layers"),
    ("model.residual_dropout", 0, Effect::Memory, "dropout in OLMo's layers"),
    ("model.embedding_dropout", 0, Effect::Memory, "dropout in OLMo's layers"),
    ("model.block_group_size", 1, Effect::Memory, "FSDP units of several layers"),
];

/// Layers and vocabulary.
pub(super) fn shape(leaves: &mut Leaves<'_>) {
    match (stated(leaves, "model.embedding_size"), leaves.get("model.vocab_size")) {
        (Some(leaf), _) => leaves.say(Field::PaddedVocabSize, &leaf.value, leaf),
        (None, Some(leaf)) if leaves.has("model.embedding_size") => {
            leaves.say(Field::PaddedVocabSize, &leaf.value, leaf);
        }
        _ => leaves.state(Field::PaddedVocabSize, "50304", Origin::Default, DEFAULT),
    }
    let tied = leaves.flag("model.weight_tying").unwrap_or(true);
    leaves.follow("model.weight_tying", Field::UntieEmbeddingsAndOutputWeights, false);
    leaves.state(
        Field::UntieEmbeddingsAndOutputWeights,
        if tied { "false" } else { "true" },
        Origin::Default,
        DEFAULT,
    );
    leaves.follow("model.include_bias", Field::AddBiasLinear, true);
    leaves.state(Field::AddBiasLinear, "true", Origin::Default, DEFAULT);
    if let Some(leaf) = leaves.get("model.block_type").filter(|leaf| leaf.value != "sequential") {
        let what = if leaf.value == "moe" {
            "megablocks experts in OLMo's blocks"
        } else {
            "OLMo's Llama-style blocks, whose attention materializes scores"
        };
        lack(leaves, leaf, Effect::Memory, what);
    }
    for (path, effect, what) in LACKING {
        if let Some(leaf) = leaves.yes(path) {
            lack(leaves, leaf, *effect, what);
        }
    }
    for field in ["attention_mask_field", "attention_bias_field", "doc_lens_field"] {
        if let Some(leaf) = stated(leaves, &format!("data.custom_dataset.collate_config.{field}")) {
            lack(
                leaves,
                leaf,
                Effect::Memory,
                "an attention mask, bias or document boundaries from a custom dataset",
            );
        }
    }
    for (path, only, effect, what) in ONLY {
        match leaves.get(path) {
            Some(leaf) if leaf.value.parse::<f64>().ok().is_none_or(|number| number != real(*only)) => {
                lack(leaves, leaf, *effect, what);
            }
            // Dropout is on by default.
            None if *only == 0 => lack_default(leaves, path, *effect, what),
            _ => {}
        }
    }
}

/// A small integer as a float, for comparison.
fn real(small: u64) -> f64 {
    u32::try_from(small).map_or(f64::NAN, f64::from)
}

/// The type of norms, and which of them have weights.
pub(super) fn norms(leaves: &mut Leaves<'_>, variants: &mut Vec<&str>) {
    let kind = leaves.get("model.layer_norm_type");
    let layer = kind.is_none_or(|leaf| leaf.value != "rms");
    match kind {
        Some(leaf) if matches!(leaf.value.as_str(), "rms" | "default") => {
            leaves.say(Field::Normalization, if layer { "LayerNorm" } else { "RMSNorm" }, leaf);
        }
        Some(leaf) => lack(leaves, leaf, Effect::Memory, "norms in 16 bits in OLMo's layers"),
        None => leaves.state(Field::Normalization, "LayerNorm", Origin::Default, DEFAULT),
    }
    leaves.turn_on("model.norm_after", Field::NormsBehind);
    let weights = leaves.flag("model.layer_norm_with_affine").unwrap_or(true);
    if !weights {
        variants.push("norms_without_weights");
    }
    let of_heads = leaves.yes("model.attention_layer_norm");
    let heads = leaves.flag("model.attention_layer_norm_with_affine").unwrap_or(true);
    if let Some(leaf) = of_heads {
        leaves.switch(Field::QkLayernorm, true, leaf);
        leaves.switch(Field::NormsOverHeads, true, leaf);
        if !heads {
            variants.push("head_norms_without_weights");
        }
    }
    // `LayerNormBase.__init__`: by default norms have biases if linear layers do.
    let linear = leaves.flag("model.include_bias").unwrap_or(true);
    let biases = leaves.flag("model.bias_for_layer_norm").unwrap_or(linear);
    if layer && !biases {
        variants.push("norms_without_biases");
    }
    let any = weights || (of_heads.is_some() && heads);
    if !layer && biases && any {
        let path = "model.bias_for_layer_norm";
        lack_default(leaves, path, Effect::Memory, "RMS norms with a bias");
    }
}

/// OLMo counts both halves of a gated MLP (`olmo/config.py`, ModelConfig).
pub(super) fn mlp(leaves: &mut Leaves<'_>, variants: &mut Vec<&str>) {
    let kind = leaves.get("model.activation_type");
    let gated = kind.is_none_or(|leaf| leaf.value == "swiglu");
    match kind {
        Some(leaf) if !matches!(leaf.value.as_str(), "swiglu" | "gelu" | "relu") => {
            lack(leaves, leaf, Effect::Memory, "what this activation keeps");
        }
        Some(leaf) if leaf.value == "relu" => variants.push("relu"),
        _ => {}
    }
    // `mlp_ratio` applies if no width is given; its default is 4.
    let width = leaves.get("model.mlp_hidden_size").filter(|leaf| leaf.whole().is_some());
    let ratio = leaves.get("model.mlp_ratio");
    let hidden = leaves.reading.count(Field::HiddenSize);
    let of_ratio =
        hidden.zip(ratio.map_or(Some(4), Leaf::whole)).and_then(|(hidden, ratio)| hidden.checked_mul(ratio));
    let place = width.or(ratio).or_else(|| leaves.get("model.d_model"));
    if let (Some(width), Some(leaf)) = (width.and_then(Leaf::whole).or(of_ratio), place) {
        let own = if gated { width / 2 } else { width };
        let note = "OLMo counts both halves of a gated MLP";
        leaves.say_noted(Field::FfnHiddenSize, &own.to_string(), leaf, note);
    }
    if let Some(leaf) = kind.or(place) {
        leaves.switch(Field::Swiglu, gated, leaf);
        leaves.switch(Field::FusedGateUp, gated, leaf);
    }
}

pub(super) fn attention(leaves: &mut Leaves<'_>, variants: &mut Vec<&str>) {
    let Some(place) = leaves.get("model.d_model") else { return };
    leaves.switch(Field::FusedQkv, true, place);
    if let Some(leaf) = leaves.yes("model.multi_query_attention") {
        leaves.query_groups("1", leaf);
    }
    if let Some(leaf) = leaves.yes("model.rope") {
        leaves.say(Field::PositionEmbeddingType, "rope", leaf);
    } else if leaves.yes("model.alibi").is_none() {
        lack_default(leaves, "model.rope", Effect::Memory, "learned positions in OLMo's model");
    }
    match leaves.get("model.rope_full_precision") {
        Some(leaf) if leaf.flag() == Some(false) => {
            lack(leaves, leaf, Effect::Memory, "RoPE in 16 bits in OLMo's layers");
        }
        _ => leaves.state(Field::Fp32Rotation, "true", Origin::Default, "OLMo applies RoPE in fp32"),
    }
    let kernel = leaves.yes("model.flash_attention");
    if let Some(leaf) = kernel {
        leaves.say(Field::AttnImplementation, "flash_attention_2", leaf);
    } else {
        leaves.state(Field::AttnImplementation, "sdpa", Origin::Default, DEFAULT);
    }
    if stated(leaves, "model.clip_qkv").is_some() {
        variants.push("clipped_queries");
    }
    if leaves.reading.value(Field::AddBiasLinear) == Some("true")
        && leaves.flag("model.weight_tying") == Some(false)
    {
        variants.push("head_bias");
    }
}
