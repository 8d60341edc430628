//! Attention kernels, and the kernels of Liger and cut cross-entropy, as trainers name them.

use super::dialect::Dialect;
use crate::leaves::{Leaf, Leaves};
use crate::{Effect, NotModelled};
use shardscope_plan::Field;

/// Values that select transformers' attention.
const ATTENTION: [(&str, &str); 16] = [
    ("flash_attn", "flash_attention_2"),
    ("flash_attention", "flash_attention_2"),
    ("fa2", "flash_attention_2"),
    ("flash_attention_2", "flash_attention_2"),
    ("flash_attn_2", "flash_attention_2"),
    ("flash_attention_3", "flash_attention_3"),
    ("flash_attn_3", "flash_attention_3"),
    ("fa3", "flash_attention_3"),
    ("flash_attention_4", "flash_attention_4"),
    ("flash_attn_4", "flash_attention_4"),
    ("fa4", "flash_attention_4"),
    ("sdpa", "sdpa"),
    ("eager", "eager"),
    ("disabled", "eager"),
    // LLaMA-Factory's word for it in 0.7 and 0.8 (`llamafactory/model/utils/attention.py`; `disabled` since 0.9.0).
    ("off", "eager"),
    ("flex_attention", "flex_attention"),
];

pub(super) fn attention(leaves: &mut Leaves<'_>) {
    if let Some(leaf) = leaves.first(&["attn_implementation", "attn_impl", "flash_attn"]) {
        let said = leaf.value.as_str();
        // Kernels from the Hub, by their repository's name.
        let named = if said.contains("flash-attn3") {
            Some("flash_attention_3")
        } else if said.contains("flash-attn4") {
            Some("flash_attention_4")
        } else if said.contains("flash-attn") {
            Some("flash_attention_2")
        } else {
            ATTENTION.iter().find(|(word, _)| *word == said).map(|(_, ours)| *ours)
        };
        match named {
            Some(word) => leaves.say(Field::AttnImplementation, word, leaf),
            None if said == "auto" || leaf.flag() == Some(false) => {}
            None if leaf.flag() == Some(true) => {
                leaves.say(Field::AttnImplementation, "flash_attention_2", leaf)
            }
            None => {
                let item =
                    NotModelled::new(&leaf.path, said, Effect::Memory, "this attention").at_some(leaf.span);
                leaves.reading.not_modelled.push(item);
            }
        }
    }
    let switches = [
        ("flash_attention", "flash_attention_2"),
        ("use_flash_attn", "flash_attention_2"),
        ("use_flash_attention", "flash_attention_2"),
        ("use_flash_attention_2", "flash_attention_2"),
        ("sdp_attention", "sdpa"),
        ("sdpa_attention", "sdpa"),
        ("eager_attention", "eager"),
        ("flex_attention", "flex_attention"),
    ];
    for (path, word) in switches {
        if let Some(leaf) = leaves.yes(path) {
            leaves.say(Field::AttnImplementation, word, leaf);
        }
    }
    leaves.pass("xformers_attention");
}

/// A default of LLaMA-Factory that changed: `cutoff_len` was 1024 until 1e6f9650 of November 10, 2024 (0.9.1). `flash_attn` has
/// the word `off` in 0.7 and 0.8 alone (`hparams/model_args.py`).
pub(super) fn of_release(
    leaves: &Leaves<'_>,
    dialect: Dialect,
    field: Field,
) -> Option<(&'static str, &'static str)> {
    if dialect != Dialect::LlamaFactory || field != Field::SeqLength {
        return None;
    }
    Some(match leaves.text("flash_attn") {
        Some("off") => ("1024", "default of LLaMA-Factory before 0.9.1, which flash_attn: off belongs to"),
        _ => ("2048", "default of LLaMA-Factory since 0.9.1 (November 2024); 1024 before"),
    })
}

/// axolotl names Liger's kernels individually; other trainers have one switch for all of them. Each replaces a module
/// or function with its own saved tensors, so each saves the same alone as together with the others.
pub(super) fn liger(leaves: &mut Leaves<'_>) {
    // ms-swift then takes the loss of each token from the logits, whatever Liger's forward is (`swift/trainers/seq2seq_trainer.py`).
    if leaves.yes("use_liger_kernel").is_some()
        && let Some(leaf) = leaves.yes("enable_dft_loss")
    {
        leaves.lack(
            leaf,
            Effect::Memory,
            "Liger's layers without its loss, which weighing each token replaces",
        );
    }
    let parts = [
        &["liger_rope"][..],
        &["liger_rms_norm"],
        &["liger_glu_activation", "liger_swiglu"],
        &["liger_fused_linear_cross_entropy"],
    ];
    let on: Vec<Option<&Leaf>> =
        parts.iter().map(|paths| paths.iter().find_map(|path| leaves.yes(path))).collect();
    leaves.pass("liger_layer_norm");
    // Replaces PyTorch's cross entropy on materialized logits: their gradient is written over them.
    if let Some(leaf) = leaves.yes("liger_cross_entropy") {
        let what = "Liger's cross entropy over logits";
        let item = NotModelled::new(&leaf.path, "", Effect::Memory, what).at_some(leaf.span);
        leaves.reading.not_modelled.push(item);
    }
    let plugged = plugged(leaves);
    let cut = leaves.yes("cut_cross_entropy").or(plugged);
    if let Some(leaf) = cut {
        leaves.say(Field::LossKind, "cce", leaf);
    }
    let Some(first) = on.iter().flatten().next() else { return };
    let [rope, norm, gate, loss] = on.as_slice() else { return };
    if [rope, norm, gate].iter().all(|part| part.is_some()) {
        leaves.switch(Field::LigerKernel, true, first);
        if loss.is_none() && cut.is_none() {
            leaves.say(Field::LossKind, "torch", first);
        }
        return;
    }
    let named = [(rope, "rotation"), (norm, "norms"), (gate, "gates")];
    let parts: Vec<&str> = named.iter().filter(|(part, _)| part.is_some()).map(|(_, word)| *word).collect();
    if !parts.is_empty() {
        leaves.say(Field::LigerParts, &parts.join(" "), first);
    }
    if let Some(leaf) = loss.filter(|_| cut.is_none()) {
        leaves.say(Field::LossKind, "liger", leaf);
    }
}

/// Plugins of axolotl whose effect follows from their own keys, or that change nothing.
const TOLD_BY_KEYS: [&str; 5] =
    ["LigerPlugin", "KernelsPlugin", "ExpertParallelPlugin", "SpectrumPlugin", "SwanLabPlugin"];
/// The plugin whose only key is on by default (`axolotl/integrations/cut_cross_entropy/args.py`).
const CUT_PLUGIN: &str = "CutCrossEntropyPlugin";

/// Reads the plugins that axolotl loads, and returns the one that replaces the loss unless its key turns it off.
fn plugged<'t>(leaves: &mut Leaves<'t>) -> Option<&'t Leaf> {
    let names = |leaf: &Leaf| -> Vec<String> {
        let words = leaf.value.split([',', '[', ']', ' ', '"', '\'']).filter(|word| !word.is_empty());
        words.map(|word| word.rsplit('.').next().unwrap_or(word).to_owned()).collect()
    };
    let leaf = leaves.get("plugins")?;
    let named = names(leaf);
    for name in &named {
        if name != CUT_PLUGIN && !TOLD_BY_KEYS.contains(&name.as_str()) {
            let what = "an axolotl plugin";
            let item = NotModelled::new("plugins", name, Effect::Memory, what).at_some(leaf.span);
            leaves.reading.not_modelled.push(item);
        }
    }
    let off = leaves.flag("cut_cross_entropy") == Some(false);
    (named.iter().any(|name| name == CUT_PLUGIN) && !off).then_some(leaf)
}
