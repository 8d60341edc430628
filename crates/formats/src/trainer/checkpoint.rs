//! The checkpoint from which a trainer starts: its shape by name, and whether its weights are already quantized.

use super::dialect::Dialect;
use super::xlam;
use crate::leaves::{Leaf, Leaves};
use crate::named::{quantized_word, take_model, with_vision};
use crate::remote_code;
use crate::{Asked, Effect, Found, NotModelled, Origin, Question};
use shardscope_plan::Field;

/// Whether a key that other trainers pass over names the model here.
pub(super) fn may_name(dialect: Dialect, key: &str) -> bool {
    key == "model_name" && matches!(dialect, Dialect::LlamaCookbook | Dialect::Transformers)
}

pub(super) fn model(leaves: &mut Leaves<'_>, dialect: Dialect) {
    super::medical::weights(leaves);
    // In ms-swift this key is the name by which the model introduces itself.
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
    // Other names in custom scripts.
    let besides = [
        "model_name",
        "base_model_name_or_path",
        "base_model_name",
        "base_model_path",
        "pretrained_model",
        "pretrained_model_path",
    ];
    let others: &[&str] = if dialect == Dialect::Transformers { &besides } else { &[] };
    let trusts = dialect.trusts_repositories() || xlam::is_own(leaves);
    remote_code::trust(leaves, "trust_remote_code", trusts);
    let Some(leaf) = leaves.first(&keys).or_else(|| leaves.first(others)) else { return };
    // An option without a value (`--model_name_or_path "$MODEL"` with an empty variable) names no model.
    if leaf.hole.is_some() || leaf.value == "true" {
        return;
    }
    // The key that the shape is read from (`axolotl/loaders/utils.py:load_model_config`), with the same value.
    let again = |other: &&Leaf| other.path == "base_model_config" && other.value == leaf.value;
    if let Some(other) = leaves.all().iter().find(again) {
        other.used.set(true);
    }
    let name = quantized(leaves, leaf);
    remote_code::stop(leaves, leaf, name, "trust_remote_code", trusts);
    decoder_alone(leaves, name);
    with_vision(&mut leaves.reading, name, &leaf.path, leaf.span);
    take_model(&mut leaves.reading, name, &leaf.path, leaf.span);
}

/// The key for a program that loads its model with `AutoModelForCausalLM`.
pub(super) const CAUSAL: &str = "auto_model_for_causal_lm";

/// Types of decoders that `AutoModelForCausalLM` extracts from a checkpoint with a vision tower
/// (`transformers/models/auto/modeling_auto.py:MODEL_FOR_CAUSAL_LM_MAPPING_NAMES`, 5.23). For other
/// types it loads both, or fails.
const TAKEN_OUT: [&str; 3] = ["qwen3_5_text", "qwen3_5_moe_text", "llama4_text"];

/// Whether `AutoModelForCausalLM` takes the decoder of the model of this name out of a checkpoint with a vision tower.
pub(crate) fn takes_decoder_out(name: &str) -> bool {
    let found = shardscope_catalog::find(name);
    let read = found.model().and_then(|model| model.architecture());
    read.is_some_and(|read| TAKEN_OUT.contains(&read.model_type.as_str()))
}

/// Omits the tower if the program loads only the decoder.
fn decoder_alone(leaves: &mut Leaves<'_>, name: &str) {
    leaves.pass(CAUSAL);
    // MedicalGPT's programs, recognized by their own option, also load it this way, except for rewards
    // (`training/supervised_finetuning.py`).
    let rewards = leaves.reading.value(Field::TrainingObjective) == Some("reward");
    let medical = leaves.get("train_file_dir").filter(|_| leaves.has("use_peft") && !rewards);
    let Some(leaf) = leaves.yes(CAUSAL).or(medical) else { return };
    if takes_decoder_out(name) {
        let note = "AutoModelForCausalLM loads the decoder of this model without its vision tower";
        leaves.say_noted(Field::VisionTower, "false", leaf, note);
    }
}

/// A checkpoint with quantized weights has the shape of the model that it was made from: the name of that model.
fn quantized<'t>(leaves: &mut Leaves<'_>, leaf: &'t Leaf) -> &'t str {
    let name = leaf.value.trim_end_matches('/');
    let lower = name.to_ascii_lowercase();
    if let Some(base) = lower.strip_suffix("-bnb-4bit").and_then(|base| name.get(..base.len())) {
        let note = "as the checkpoint is";
        leaves.say_noted(Field::BaseQuantization, "nf4", leaf, note);
        leaves.say_noted(Field::DoubleQuantization, "true", leaf, note);
        if leaves.reading.value(Field::TrainType) == Some("lora") {
            leaves.say_noted(Field::TrainType, "qlora", leaf, note);
        }
        // unsloth's dynamic checkpoints keep some layers in 16 bits.
        return match base.strip_suffix("-unsloth") {
            Some(base) => {
                ask_for_whole(leaves, leaf, name);
                base
            }
            None => base,
        };
    }
    if let Some(word) = quantized_word(name) {
        let what = if word.ends_with("bit") {
            "a checkpoint that is quantized by its name: how its program loads it, and what it trains"
        } else {
            "a checkpoint quantized by a library other than bitsandbytes"
        };
        let item = NotModelled::new(&leaf.path, name, Effect::Memory, what).at_some(leaf.span);
        leaves.reading.not_modelled.push(item);
    }
    name
}

/// Asks which linear layers the quantized checkpoint `name` leaves in 16 bits: its configuration lists them.
pub(super) fn ask_for_whole(leaves: &mut Leaves<'_>, leaf: &Leaf, name: &str) {
    let field = Field::WholeLinears;
    if leaves.reading.value(field).is_some() {
        return;
    }
    let mut found = Found::new(field, String::new(), Origin::Script).by(&leaf.path, leaf.span);
    found.hole = Some(format!("the config.json of {name}"));
    leaves.reading.take(found);
    let address = shardscope_catalog::config_address(name);
    leaves.reading.questions.push(Question {
        asks: Asked::Setting(field),
        prompt: format!(
            "{name} keeps some linear layers in 16 bits; its config.json lists them (llm_int8_skip_modules). \
             Drop that file on the page or paste it after this text, or name the modules here: {address}"
        ),
        choices: Vec::new(),
        proposal: None,
    });
}
