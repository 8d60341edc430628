//! Models that OLMo-core creates by name (`TransformerConfig.olmo3_7B(...)`), as keys of its saved configuration.

use crate::names;

/// The settings that a factory of this name creates, by path below `model`; `None` if the factory is not known.
pub(crate) fn factory(name: &str) -> Option<Vec<(&'static str, String)>> {
    let line = names::section("olmo-core factories").find(|line| line.split(' ').next() == Some(name))?;
    let mut words = line.split(' ').skip(1);
    let mut out: Vec<(&'static str, String)> =
        SIZES.iter().map(|path| Some((*path, words.next()?.to_owned()))).collect::<Option<_>>()?;
    let signs = words.next()?;
    out.extend(USUAL.iter().map(|(path, value)| (*path, (*value).to_owned())));
    for (sign, path, value) in SIGNS {
        if signs.contains(*sign) {
            out.push((path, (*value).to_owned()));
        }
    }
    Some(out)
}

/// The settings that `TransformerConfig.llama_like` derives from the given sizes.
pub(crate) fn like(
    hidden: u64,
    multiplier: Option<f64>,
    multiple: u64,
) -> Option<Vec<(&'static str, String)>> {
    let width = feed_forward(hidden, multiplier, multiple)?;
    let mut out: Vec<(&'static str, String)> =
        USUAL.iter().map(|(path, value)| (*path, (*value).to_owned())).collect();
    out.push(("block.feed_forward.hidden_size", width.to_string()));
    Some(out)
}

/// `int(multiplier * int(8 * d_model / 3))`, rounded up to a multiple.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
fn feed_forward(hidden: u64, multiplier: Option<f64>, multiple: u64) -> Option<u64> {
    let plain = hidden.checked_mul(8)? / 3;
    let scaled = multiplier.map_or(plain, |multiplier| (multiplier * plain as f64) as u64);
    scaled.checked_next_multiple_of(multiple.max(1))
}

const SIZES: &[&str] = &[
    "n_layers",
    "d_model",
    "block.sequence_mixer.n_heads",
    "block.sequence_mixer.n_kv_heads",
    "block.sequence_mixer.head_dim",
    "block.feed_forward.hidden_size",
];

/// Settings that all of them share.
const USUAL: &[(&str, &str)] = &[
    ("block.sequence_mixer.bias", "false"),
    ("block.sequence_mixer.rope.name", "default"),
    ("block.feed_forward.bias", "false"),
    ("block.layer_norm.name", "rms"),
    ("block.layer_norm.bias", "false"),
    ("lm_head.bias", "false"),
];

/// Letters in the table, and the settings that they stand for.
const SIGNS: &[(char, &str, &str)] = &[
    ('r', "block.name", "reordered_norm"),
    ('q', "block.sequence_mixer.qk_norm.name", "rms"),
    ('h', "block.sequence_mixer.qk_norm.name", "rms"),
    ('h', "block.sequence_mixer.use_head_qk_norm", "true"),
    ('w', "block.sequence_mixer.sliding_window.pattern", "[4096,4096,4096,-1]"),
    ('w', "block.sequence_mixer.sliding_window.force_full_attention_on_first_layer", "false"),
    ('w', "block.sequence_mixer.sliding_window.force_full_attention_on_last_layer", "true"),
    ('n', "block.layer_norm.name", "qwen_rms"),
    ('t', "tie_word_embeddings", "true"),
    ('f', "block.sequence_mixer.backend", "flash_2"),
];
