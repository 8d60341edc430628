//! Names of the calls by which a training is recognized.

use super::super::dialect::Dialect;
use crate::{Found, Origin, Reading};
use shardscope_plan::Field;

/// Calls whose keywords are settings of a training.
pub(super) const CONFIGS: [&str; 14] = [
    "TrainingArguments",
    "Seq2SeqTrainingArguments",
    "SFTConfig",
    "DPOConfig",
    "SFTTrainer",
    "DPOTrainer",
    "GRPOTrainer",
    "RLOOTrainer",
    "KTOTrainer",
    "RewardTrainer",
    "LoraConfig",
    "BitsAndBytesConfig",
    "UnslothTrainingArguments",
    "get_peft_model",
];
/// Calls of trainings that hold more than one model.
pub(super) const PREFERENCES: [&str; 9] = [
    "AsyncGRPOConfig",
    "GRPOConfig",
    "PPOConfig",
    "RewardConfig",
    "KTOConfig",
    "ORPOConfig",
    "CPOConfig",
    "RLOOConfig",
    "OnlineDPOConfig",
];
/// Losses of TRL that are modelled: arguments, trainer, and the key and value that identify them.
pub(super) const OBJECTIVES: [(&str, &str, &str, &str); 7] = [
    ("DPOConfig", "DPOTrainer", "rl", DPO),
    ("GRPOConfig", "GRPOTrainer", "rl", GRPO),
    ("RLOOConfig", "RLOOTrainer", "rl", "rloo"),
    ("KTOConfig", "KTOTrainer", "rl", "kto"),
    ("ORPOConfig", "ORPOTrainer", "rl", ORPO),
    ("CPOConfig", "CPOTrainer", "rl", "cpo"),
    ("RewardConfig", "RewardTrainer", "center_rewards_coefficient", "0"),
];
pub(super) const DPO: &str = "dpo";
pub(super) const GRPO: &str = "grpo";
pub(super) const ORPO: &str = "orpo";
/// Their trainers, to which older programs pass transformers' own `TrainingArguments`.
pub(super) const PREFERENCE_TRAINERS: [&str; 14] = [
    "GRPOTrainer",
    "PPOTrainer",
    "RewardTrainer",
    "KTOTrainer",
    "ORPOTrainer",
    "RLOOTrainer",
    "CPOTrainer",
    "OnlineDPOTrainer",
    "BCOTrainer",
    "PRMTrainer",
    "GKDTrainer",
    "XPOTrainer",
    "NashMDTrainer",
    "IterativeSFTTrainer",
];
/// Parts of the names of classes that load an encoder-decoder.
const ENCODER_DECODERS: [&str; 2] = ["Seq2SeqLM", "T5ForConditionalGeneration"];
/// Parts of the names of classes that load something other than a decoder with its output layer.
const OTHER_MODELS: [&str; 9] = [
    "SequenceClassification",
    "TokenClassification",
    "QuestionAnswering",
    "MaskedLM",
    "T5For",
    "T5EncoderModel",
    "T5Model",
    "BartFor",
    "WhisperFor",
];
/// Calls among those above that configure how a library's trainer trains.
pub(super) const ARGUMENTS: [&str; 5] =
    ["TrainingArguments", "Seq2SeqTrainingArguments", "SFTConfig", "DPOConfig", "UnslothTrainingArguments"];
/// Parsers that fill complete argument classes from a command line.
pub(super) const PARSERS: [&str; 3] = ["HfArgumentParser", "TrlParser", "H4ArgumentParser"];

/// The trainer that a program's calls build, and whose arguments they are.
pub(super) fn dialect(fast: bool, has: &dyn Fn(&str) -> bool, by_pairs: bool) -> Dialect {
    match (fast, has("SFTConfig") || has("DPOConfig") || has("UnslothTrainingArguments")) {
        (true, true) => Dialect::Unsloth,
        (true, false) if !has("TrainingArguments") => Dialect::Unsloth,
        (true, false) => Dialect::UnslothArguments,
        (false, _) if has("SFT") || by_pairs => Dialect::Trl,
        (false, _) => Dialect::Transformers,
    }
}

/// The class that a call loads a model as, where that is something other than a decoder with its output layer; an encoder-decoder
/// is noted instead, and a class by which it would be none.
pub(super) fn loaded<'a>(call: &'a str, seq2seq: &mut Option<bool>) -> Option<&'a str> {
    let has = |parts: &[&str]| parts.iter().any(|part| call.contains(part));
    if has(&ENCODER_DECODERS) {
        *seq2seq = Some(true);
        return None;
    }
    let class = call.rsplit('.').nth(1).unwrap_or_default();
    if class == "AutoModel" || class.ends_with("ForCausalLM") {
        seq2seq.get_or_insert(false);
    }
    call.split('.').next().filter(|_| has(&OTHER_MODELS))
}

/// Whether the program loads its model as an encoder-decoder, if that is known and the model is not known to be a decoder.
pub(super) fn as_pair(loaded: Option<bool>, reading: &Reading) -> Option<Found> {
    let has = |field| reading.value(field).is_some();
    let decodes = has(Field::NumLayers) && !has(Field::EncoderLayers);
    let said = loaded.filter(|pair| *pair || !decodes)?;
    Some(Found::new(Field::Seq2seq, said.to_string(), Origin::Script))
}
