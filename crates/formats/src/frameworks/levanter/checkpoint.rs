//! Models that levanter takes from a checkpoint's configuration instead of from its own file.

use crate::leaves::{Leaf, Leaves};
use crate::named::take_model;
use crate::{Asked, Effect, NotModelled, Origin, Question};
use shardscope_catalog::vocabulary;
use shardscope_plan::Field;

/// Keys that only `main/sft.py` and `main/sft_mixture.py` take.
const OF_SFT: [&str; 14] = [
    "model_name_or_path",
    "max_seq_len",
    "dataset_type",
    "messages_field",
    "input_role",
    "output_role",
    "chat_train_urls",
    "reinit_tokens",
    "reinit_lm_head",
    "reinit_embeddings",
    "supervised_data",
    "mixture_weights",
    "mixture_block_size",
    "stop_strategy",
];

/// What a checkpoint's configuration states: settings of the file that it replaces.
const REPLACED: [Field; 9] = [
    Field::NumLayers,
    Field::HiddenSize,
    Field::NumAttentionHeads,
    Field::FfnHiddenSize,
    Field::KvChannels,
    Field::NumQueryGroups,
    Field::GroupQueryAttention,
    Field::SeqLength,
    Field::VocabSize,
];

/// The checkpoint of `initialize_from_hf: true`, by the file's type of model (`models/llama.py`, `models/mistral.py`); of
/// `main/sft.py` without a name.
const LLAMA: &str = "NousResearch/Llama-2-7b-hf";
const MISTRAL: &str = "mistralai/Mistral-7B-v0.1";
/// Its `max_seq_len` by default.
const SFT_LENGTH: &str = "2048";
/// Llama 3's tokens. Meta's tokenizers have neither a token for padding nor one for unknown words
/// (`transformers/models/llama/convert_llama_weights_to_hf.py:Llama3Converter`), except those that read images.
const LLAMA_3: u64 = 128_256;

/// Whether the file is of `main/sft.py` or `main/sft_mixture.py`.
pub(super) fn is_of_sft(leaves: &Leaves<'_>) -> bool {
    // Sources and weights are groups of keys.
    leaves.all().iter().any(|leaf| {
        let top = leaf.path.split('.').next().unwrap_or_default();
        OF_SFT.contains(&top)
    })
}

/// With `use_hf_model_config`, `main/train_lm.py` replaces the model of the file by the checkpoint's, with levanter's
/// defaults for all that the checkpoint does not say; `main/sft.py` and `sft_mixture.py` do so whenever they start from one.
/// Whether this file's model is replaced; `whose` defaults its length is.
pub(super) fn replaces(leaves: &mut Leaves<'_>, whose: &'static str) -> bool {
    let starts = leaves.get("initialize_from_hf").filter(|leaf| leaf.flag() != Some(false));
    let Some(starts) = starts.filter(|leaf| !leaf.value.is_empty()) else { return false };
    let of_sft = is_of_sft(leaves);
    if !of_sft && leaves.yes("use_hf_model_config").is_none() {
        return false;
    }
    let length = leaves.get("max_seq_len").filter(|_| of_sft);
    leaves.reading.keep(&|found| !REPLACED.contains(&found.field));
    leaves.pass_below(&["model."]);
    let named = if starts.flag().is_some() {
        leaves.get("model_name_or_path").filter(|_| of_sft)
    } else {
        Some(starts)
    };
    let usual = if leaves.text("model.type") == Some("mistral") && !of_sft { MISTRAL } else { LLAMA };
    let name = named.map_or(usual, |leaf| &leaf.value);
    take_model(&mut leaves.reading, name, &named.unwrap_or(starts).path, named.unwrap_or(starts).span);
    match length {
        Some(leaf) => leaves.say(Field::SeqLength, &leaf.value, leaf),
        None if of_sft => leaves.state(Field::SeqLength, SFT_LENGTH, Origin::Default, whose),
        // `models/llama.py:from_hf_config`.
        None => {
            if let Some(longest) = leaves.reading.count(Field::MaxPositionEmbeddings) {
                let why = "levanter trains at the length of the checkpoint's configuration";
                leaves.state(Field::SeqLength, &longest.to_string(), Origin::Derived, why);
            }
        }
    }
    // The tokenizer's tokens, not the checkpoint's rows (`main/train_lm.py`).
    leaves.reading.keep(&|found| found.field != Field::VocabSize && found.field != Field::PaddedVocabSize);
    if of_sft {
        vocabulary_of_sft(leaves);
    }
    true
}

/// `main/sft.py` adds `[PAD]`, `</s>`, `<s>` and `<unk>` where the tokenizer has none, and resizes the ends to its tokens.
fn vocabulary_of_sft(leaves: &mut Leaves<'_>) {
    let name = leaves.text("tokenizer").unwrap_or(LLAMA);
    let known = vocabulary(name).map(|(size, _)| size);
    let lower = name.to_ascii_lowercase();
    if known == Some(LLAMA_3) && lower.starts_with("meta-llama/") && !lower.contains("vision") {
        let size = (LLAMA_3 + 2).to_string();
        let why = "Llama 3's tokens, and [PAD] and <unk>, which levanter's SFT adds";
        leaves.reading.keep(&|found| found.field != Field::TokenizerModel);
        leaves.state(Field::VocabSize, &size, Origin::Derived, why);
        return;
    }
    leaves.reading.keep(&|found| found.field != Field::TokenizerModel);
    leaves.reading.questions.push(Question {
        asks: Asked::Setting(Field::VocabSize),
        prompt: "Vocabulary size? levanter's SFT adds [PAD], </s>, <s> and <unk> to the tokenizer where it has none"
            .to_owned(),
        choices: Vec::new(),
        proposal: known.map(|size| size.to_string()),
    });
}

/// Keys that no program takes beside `supervised_data`: of `examples/alpaca/alpaca.py` and of earlier versions.
const REFUSED: [&str; 3] = ["max_tune_length", "trust_remote_code", "model_cache_dir"];

/// Keys that stop because the programs that take the others refuse them.
pub(super) fn refused(leaves: &mut Leaves<'_>) {
    let sft = leaves.all().iter().any(|leaf| leaf.path.starts_with("supervised_data"));
    let stated: Vec<&Leaf> = REFUSED.iter().filter_map(|path| leaves.get(path)).collect();
    if let Some(leaf) = stated.first().filter(|_| sft) {
        let what = "a key that levanter's main/sft.py refuses, whose length is max_seq_len";
        let item = NotModelled::new(&leaf.path, &leaf.value, Effect::Model, what).at_some(leaf.span);
        leaves.reading.not_modelled.push(item);
    }
}
