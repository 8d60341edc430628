//! `TransformerConfig`: blocks, attention, norms, MLP and the output layer.

use super::stated::{DEFAULT, lack, lack_below, stated};
use crate::leaves::Leaves;
use crate::{Effect, Origin};
use shardscope_plan::Field;

/// Keys that describe the attention of all blocks: `attention` before version 2.5.
const ATTENTION: [&str; 2] = ["model.block.sequence_mixer", "model.block.attention"];

/// Words that change a figure and have no formula unless they have this value.
const ONLY: &[(&str, &[&str], Effect, &str)] = &[
    ("model.name", &["default"], Effect::Model, "a model type with experts or normalized weights"),
    ("model.dtype", &["float32"], Effect::Memory, "weights that OLMo-core creates in 16 bits"),
    ("model.lm_head.name", &["default"], Effect::Memory, "an output layer with normalized weights"),
    (
        "model.lm_head.loss_implementation",
        &["default"],
        Effect::Memory,
        "a loss fused with the output layer, at which OLMo-core's compiled graph breaks",
    ),
    ("model.block.feed_forward.name", &["default"], Effect::Memory, "an MLP with normalized weights"),
    (
        "model.block.feed_forward.activation",
        &["silu"],
        Effect::Memory,
        "an activation other than SiLU in OLMo-core's MLP",
    ),
    ("model.block.layer_norm.full_precision", &["true"], Effect::Memory, "norms in 16 bits"),
    ("model.block.dropout", &["0", "0.0"], Effect::Memory, "dropout in OLMo-core's layers"),
];

/// The same for attention, by keys below it.
const ATTENTION_ONLY: &[(&str, &[&str], Effect, &str)] = &[
    ("type", &["attention"], Effect::Model, "a recurrent mixer in place of attention"),
    ("name", &["default"], Effect::Memory, "attention other than OLMo-core's own"),
    ("dropout", &["0", "0.0"], Effect::Memory, "dropout of attention's scores"),
    ("rope.name", &["default"], Effect::Memory, "another kind of RoPE in OLMo-core's layers"),
    ("rope.full_precision", &["true"], Effect::Memory, "RoPE in 16 bits"),
    ("rope.no_global_rope", &["false"], Effect::Memory, "full-attention layers without RoPE"),
];

/// Parts that change a figure and have no formula when they are present.
const LACKING: &[(&str, Effect, &str)] = &[
    ("model.block_overrides", Effect::Model, "layers that differ from one another (block_overrides)"),
    ("model.block_pattern", Effect::Model, "layers of several kinds (block_pattern)"),
    ("model.block.feed_forward_moe", Effect::Model, "experts in OLMo-core's layers"),
    ("model.embedding_norm", Effect::Memory, "a norm after OLMo-core's embedding"),
    ("model.freeze_params", Effect::Memory, "weights that do not train"),
];

pub(super) fn model(leaves: &mut Leaves<'_>) {
    let attention =
        ATTENTION.into_iter().find(|path| leaves.has(&format!("{path}.n_heads"))).unwrap_or(ATTENTION[0]);
    let only = ONLY.iter().map(|(path, usual, effect, what)| ((*path).to_owned(), *usual, *effect, *what));
    let of_attention = ATTENTION_ONLY
        .iter()
        .map(|(key, usual, effect, what)| (format!("{attention}.{key}"), *usual, *effect, *what));
    for (path, usual, effect, what) in only.chain(of_attention) {
        if let Some(leaf) = stated(leaves, &path).filter(|leaf| !usual.contains(&leaf.value.as_str())) {
            lack(leaves, leaf, effect, what);
        }
    }
    for (path, effect, what) in LACKING {
        lack_below(leaves, path, *effect, what);
    }
    for (key, effect, what) in [
        ("gate", Effect::Memory, "a gate on attention's output in OLMo-core's layers"),
        ("clip_qkv", Effect::Memory, "queries, keys and values clamped in place"),
    ] {
        lack_below(leaves, &format!("{attention}.{key}"), effect, what);
    }
    if !leaves.has(&format!("{attention}.n_heads")) {
        return;
    }
    // Biases are on by default (`nn/attention/__init__.py`, `nn/feed_forward.py`, `nn/lm_head.py`).
    for path in [
        &format!("{attention}.bias"),
        "model.block.feed_forward.bias",
        "model.lm_head.bias",
        "model.block.layer_norm.bias",
    ] {
        match leaves.get(path) {
            Some(leaf) if leaf.flag() == Some(false) => {}
            _ => {
                let what = "biases in OLMo-core's layers, which are on by default";
                let item = crate::NotModelled::new(path, "", Effect::Memory, what);
                leaves.reading.not_modelled.push(item);
            }
        }
    }
    block(leaves);
    heads(leaves, attention);
    windows(leaves, attention);
    leaves.take(&["model.block.feed_forward.hidden_size"], Field::FfnHiddenSize);
    let usual = [(Field::Swiglu, "true"), (Field::AddBiasLinear, "false"), (Field::Fp32Rotation, "true")];
    leaves.state_all(&usual, Origin::Derived, "how OLMo-core's layers are made");
    let tied = leaves.flag("model.tie_word_embeddings") == Some(true);
    let untied = if tied { "false" } else { "true" };
    leaves.state(Field::UntieEmbeddingsAndOutputWeights, untied, Origin::Default, DEFAULT);
    leaves.pass_below(&[
        &format!("{attention}.rope."),
        &format!("{attention}.qk_norm."),
        "model.block.layer_norm.",
        "model.lm_head.layer_norm.",
    ]);
}

/// The placement of the norms, and their type.
fn block(leaves: &mut Leaves<'_>) {
    match stated(leaves, "model.block.name") {
        Some(leaf) if leaf.value == "reordered_norm" => leaves.switch(Field::NormsBehind, true, leaf),
        Some(leaf) if leaf.value != "default" => {
            lack(
                leaves,
                leaf,
                Effect::Model,
                "blocks other than OLMo-core's default and reordered-norm ones",
            );
        }
        _ => {}
    }
    match stated(leaves, "model.block.layer_norm.name") {
        Some(leaf) if leaf.value == "rms" => leaves.say(Field::Normalization, "RMSNorm", leaf),
        // It rounds before the product with its weight, of which a compiled layer saves nothing (`QwenRMSNorm`).
        Some(leaf) if leaf.value == "qwen_rms" => {
            leaves.say(Field::Normalization, "RMSNorm", leaf);
            if leaves.yes("train_module.compile_model").is_none() {
                lack(leaves, leaf, Effect::Memory, "norms that round before multiplying by their weight");
            }
        }
        Some(leaf) => lack(leaves, leaf, Effect::Memory, "norms other than unfused RMSNorm"),
        None => {}
    }
}

fn heads(leaves: &mut Leaves<'_>, attention: &str) {
    let key = |key: &str| format!("{attention}.{key}");
    leaves.take(&[&key("n_heads")], Field::NumAttentionHeads);
    let all = leaves.reading.value(Field::NumAttentionHeads).map(str::to_owned);
    if let Some(leaf) = stated(leaves, &key("n_kv_heads")).filter(|leaf| Some(&leaf.value) != all.as_ref()) {
        leaves.query_groups(&leaf.value, leaf);
    }
    if let Some(leaf) = stated(leaves, &key("head_dim")) {
        leaves.say(Field::KvChannels, &leaf.value, leaf);
    }
    if let Some(leaf) = stated(leaves, &key("rope.name")) {
        leaves.say(Field::PositionEmbeddingType, "rope", leaf);
    } else {
        leaves.state(Field::PositionEmbeddingType, "none", Origin::Default, DEFAULT);
    }
    let below = key("qk_norm.");
    if let Some(leaf) = leaves.all().iter().find(|leaf| leaf.path.starts_with(&below)) {
        leaves.switch(Field::QkLayernorm, true, leaf);
        if leaves.yes(&key("use_head_qk_norm")).is_none() {
            leaves.switch(Field::NormsOverHeads, true, leaf);
        }
    }
    leaves.pass(&key("use_head_qk_norm"));
    // flash-attn 2 if it is installed and attention has a window (`nn/attention/__init__.py:Attention`).
    let windowed = stated(leaves, &key("sliding_window.pattern")).is_some();
    let flash = leaves.yes(&key("use_flash"));
    match stated(leaves, &key("backend")).or(flash) {
        Some(leaf) if leaf.value == "flash_2" || leaf.flag() == Some(true) => {
            leaves.say(Field::AttnImplementation, "flash_attention_2", leaf);
        }
        Some(leaf) if leaf.value == "torch" && !windowed => {
            leaves.say(Field::AttnImplementation, "sdpa", leaf)
        }
        Some(leaf) => lack(leaves, leaf, Effect::Memory, "this attention kernel in OLMo-core's layers"),
        None if windowed => {
            leaves.state(Field::AttnImplementation, "flash_attention_2", Origin::Default, DEFAULT)
        }
        None => leaves.state(Field::AttnImplementation, "sdpa", Origin::Default, DEFAULT),
    }
}

/// `SlidingWindowAttentionConfig`: a pattern repeated over all layers, with full attention in the first
/// and the last layer by default.
fn windows(leaves: &mut Leaves<'_>, attention: &str) {
    let key = |key: &str| format!("{attention}.sliding_window.{key}");
    let Some(leaf) = stated(leaves, &key("pattern")) else { return };
    let ends = ["first", "last"]
        .map(|end| leaves.flag(&key(&format!("force_full_attention_on_{end}_layer"))).unwrap_or(true));
    let pattern: Vec<i64> =
        leaf.value.trim_matches(['[', ']']).split(',').filter_map(|word| word.trim().parse().ok()).collect();
    let width = pattern.iter().copied().find(|width| *width > 0);
    let (Some(layers), Some(width)) =
        (leaves.reading.count(Field::NumLayers).filter(|layers| *layers <= 4096), width)
    else {
        return;
    };
    if pattern.iter().any(|other| *other > 0 && *other != width) {
        return lack(leaves, leaf, Effect::Model, "windows of several widths");
    }
    let sign = |layer: u64| {
        if (ends[0] && layer == 0) || (ends[1] && layer + 1 == layers) {
            return '*';
        }
        let place = (layer - u64::from(ends[0])) % (pattern.len() as u64).max(1);
        let wide = usize::try_from(place).ok().and_then(|place| pattern.get(place));
        if wide.is_some_and(|width| *width > 0) { 'w' } else { '*' }
    };
    let signs: String = (0..layers).map(sign).collect();
    leaves.say(Field::MixerPattern, &signs, leaf);
    leaves.say(Field::AttentionWindow, &width.to_string(), leaf);
}
