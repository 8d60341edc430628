//! The checkpoint that a trainer starts from: its shape by name, and whether its weights are quantized already.

use super::dialect::Dialect;
use crate::formats::leaves::{Leaf, Leaves};
use crate::named::{quantized_word, take_model, with_vision};
use crate::{Effect, NotModelled};
use shardscope_plan::Field;

pub(super) fn model(leaves: &mut Leaves<'_>, dialect: Dialect) {
    // ms-swift has the same key for the name that a model answers to.
    let own = if dialect == Dialect::LlamaCookbook { "model_name" } else { "model_name_or_path" };
    let keys = [
        own,
        "model_name_or_path",
        "model",
        "base_model",
        "pretrained_model_name_or_path",
        "model_id",
        "hf_checkpoint",
        "model_path",
        "model_id_or_path",
    ];
    // What scripts of anybody's call it besides.
    let besides = [
        "model_name",
        "base_model_name_or_path",
        "base_model_name",
        "base_model_path",
        "pretrained_model",
        "pretrained_model_path",
    ];
    let others: &[&str] = if dialect == Dialect::Transformers { &besides } else { &[] };
    let Some(leaf) = leaves.first(&keys).or_else(|| leaves.first(others)) else { return };
    if leaf.hole.is_some() {
        return;
    }
    let name = quantized(leaves, leaf);
    with_vision(&mut leaves.reading, name, &leaf.path, leaf.span);
    take_model(&mut leaves.reading, name, &leaf.path, leaf.span);
}

/// A checkpoint whose weights are quantized already has the shape of the one it was made from: its name.
fn quantized<'t>(leaves: &mut Leaves<'_>, leaf: &'t Leaf) -> &'t str {
    let name = leaf.value.trim_end_matches('/');
    let lower = name.to_ascii_lowercase();
    if let Some(base) = lower.strip_suffix("-bnb-4bit").and_then(|base| name.get(..base.len())) {
        // unsloth's dynamic ones keep some layers in 16 bits.
        match base.strip_suffix("-unsloth") {
            Some(base) => {
                let what = "a checkpoint of which some layers are quantized and others are not";
                let item = NotModelled::new(&leaf.path, name, Effect::Memory, what).at_some(leaf.span);
                leaves.reading.not_modelled.push(item);
                return base;
            }
            None => {
                let note = "as the checkpoint is";
                leaves.say_noted(Field::BaseQuantization, "nf4", leaf, note);
                leaves.say_noted(Field::DoubleQuantization, "true", leaf, note);
                if leaves.reading.value(Field::TrainType) == Some("lora") {
                    leaves.say_noted(Field::TrainType, "qlora", leaf, note);
                }
                return base;
            }
        }
    }
    if quantized_word(name).is_some() {
        let what = "a checkpoint whose weights are quantized by another library than bitsandbytes";
        let item = NotModelled::new(&leaf.path, name, Effect::Memory, what).at_some(leaf.span);
        leaves.reading.not_modelled.push(item);
    }
    name
}
