//! What a question proposes: the words that a setting accepts, and the most common value.

use shardscope_plan::{Field, ValueKind};

/// The proposal for a setting that the text leaves open: the most common value.
const USUAL: [(Field, &str); 10] = [
    (Field::ParamsDtype, "bf16"),
    (Field::AttnImplementation, "sdpa"),
    (Field::MicroBatchSize, "1"),
    (Field::NumMicroBatches, "1"),
    (Field::SeqLength, "4096"),
    (Field::LoraRank, "16"),
    (Field::LoraDropout, "0"),
    (Field::GradientCheckpointing, "true"),
    (Field::Bf16, "true"),
    // transformers' `adamw_torch` and its fused form, which hold the same states.
    (Field::Optimizer, "adam"),
];

/// Maximum number of words shown with a question as its choices.
const SHOWN: usize = 8;

/// The words that a setting accepts, if there are few.
pub(super) fn choices(field: Field) -> Vec<String> {
    match field.kind() {
        ValueKind::Word(words) if words.len() <= SHOWN => {
            words.iter().map(|word| (*word).to_owned()).collect()
        }
        _ => Vec::new(),
    }
}

/// The proposal for a setting.
pub(super) fn usual(field: Field) -> Option<String> {
    USUAL.iter().find(|(known, _)| *known == field).map(|(_, value)| (*value).to_owned())
}
