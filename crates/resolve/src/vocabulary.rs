//! The vocabulary: stated, known from its tokenizer, or asked for; and its padding.

use super::table::Table;
use crate::SettingValue::Int;
use crate::{Asked, Origin, Question};
use shardscope_catalog as catalog;
use shardscope_plan::{Field, Software, VocabPadding};
use shardscope_source::{Code, Diagnostic};

/// GPT-2's vocabulary, proposed if nothing suggests another (Radford et al. 2019; Megatron-LM's examples use it).
const PROPOSED: u64 = 50_257;

/// Megatron's tokenizer without a vocabulary (`--tokenizer-type`).
const NULL_TOKENIZER: &str = "NullTokenizer";

/// Rows of the embedding (`vocab_utils.py`: a multiple of `make_vocab_size_divisible_by` times the tensor size).
pub(super) fn padded(table: &mut Table) -> Option<(u64, Option<VocabPadding>)> {
    // A stated padded size is that of the embedding: nothing is rounded, and TP does not change it.
    if let Some(padded) = table.count(Field::PaddedVocabSize) {
        return Some((padded, None));
    }
    let known = tokenizer(table);
    match known {
        Some((size, name)) if !table.has(Field::VocabSize) => {
            table.fill(Field::VocabSize, Int(size), Origin::Catalog, &name);
        }
        None if !table.has(Field::VocabSize) => propose(table),
        known => unread(table, known),
    }
    let mut size = table.count(Field::VocabSize)?;
    if table.is_old() && table.word(Field::TokenizerType) == NULL_TOKENIZER {
        // Up to core 0.17 the null tokenizer added its own end-of-document token.
        size += 1;
    }
    if table.switch(Field::PadVocabSize) == Some(false) {
        // Also stored as a setting, so that the table shows the size of the embedding.
        table.derive(Field::PaddedVocabSize, Int(size), "not padded");
        return Some((size, None));
    }
    let multiple = table.degree(Field::MakeVocabSizeDivisibleBy);
    let tensor = table.degree(Field::TensorModelParallelSize);
    let padding = VocabPadding { size, multiple };
    let padded = padding.padded(tensor);
    let block = multiple.saturating_mul(tensor);
    let rule = format!("vocabulary rounded up to a multiple of make_vocab_size_divisible_by x TP = {block}");
    table.derive(Field::PaddedVocabSize, Int(padded), &rule);
    Some((padded, Some(padding)))
}

/// Megatron's tokenizer of Hugging Face's files (`--tokenizer-type`).
const HUGGING_FACE: &str = "HuggingFaceTokenizer";

/// A stated size that Megatron does not read: the vocabulary of a tokenizer with files is what those hold, and
/// `--vocab-size` is for the others (`core/tokenizers/utils/build_tokenizer.py:build_tokenizer, _set_padded_vocab_size`,
/// and `training/tokenizer/tokenizer.py` before core 0.16).
fn unread(table: &mut Table, known: Option<(u64, String)>) {
    let megatron = table.is_any(&[Software::MegatronCoreTe, Software::MegatronCoreLocal]);
    let stated = table.get(Field::VocabSize).is_some_and(|size| size.flag.as_deref() == Some("--vocab-size"));
    if !megatron || !stated || table.word(Field::TokenizerType) != HUGGING_FACE {
        return;
    }
    match known {
        Some((size, name)) if table.number(Field::VocabSize) != size => {
            let rule = format!("{name}: --vocab-size is not read for a {HUGGING_FACE}");
            table.overrule(Field::VocabSize, Int(size), &rule);
        }
        Some(_) => {}
        None => table.warn(
            Code::NoEffect,
            Field::VocabSize,
            "--vocab-size is not read for a HuggingFaceTokenizer, whose vocabulary is that of its files; they are not here, and the stated size stands in for it",
        ),
    }
}

/// The vocabulary of the tokenizer that the text names, and the evidence for it.
fn tokenizer(table: &Table) -> Option<(u64, String)> {
    // In this order: a model or file is more specific than a tokenizer type.
    let files = [Field::TokenizerModel, Field::VocabFile];
    let by_file = files.iter().find_map(|field| catalog::vocabulary(table.word(*field)));
    // Llama 2's type is a class that reads any SentencePiece file (`Llama2Tokenizer` of Megatron-LM's `tokenizer.py`):
    // the file determines the vocabulary, and the class does not make it Llama 2's.
    let kind = table.word(Field::TokenizerType);
    by_file.or_else(|| catalog::vocabulary(kind).filter(|_| !is_of_a_file(table)))
}

/// Whether the tokenizer type has its vocabulary in a separately named file: Llama 2's always, GPT-2's if its
/// `--vocab-file` is a different one (`GPT2BPETokenizer` reads any such file).
fn is_of_a_file(table: &Table) -> bool {
    let kind = table.word(Field::TokenizerType);
    kind.eq_ignore_ascii_case("Llama2Tokenizer") || is_of_own_words(table)
}

/// Whether GPT-2's tokenizer reads a custom vocabulary.
fn is_of_own_words(table: &Table) -> bool {
    let (kind, file) = (table.word(Field::TokenizerType), table.word(Field::VocabFile));
    kind.eq_ignore_ascii_case("GPT2BPETokenizer") && !file.is_empty() && catalog::vocabulary(file).is_none()
}

/// The size that appears in a tokenizer's path (`nordic_tokenizer_131072/vocab.json`).
fn stated_by_path(path: &str) -> Option<u64> {
    /// Language-model tokenizers have between this many tokens.
    const SIZES: std::ops::RangeInclusive<u64> = 8_000..=1_000_000;
    let mut words = path.split(|c: char| !c.is_ascii_alphanumeric());
    words.find_map(|word| word.parse().ok().filter(|size| word.len() > 4 && SIZES.contains(size)))
}

/// Whether a path is a placeholder in an example (`/path/to/tokenizer`, `your tokenizer path`).
fn is_left_open(path: &str) -> bool {
    let path = path.to_ascii_lowercase();
    path.starts_with(['<', '$', '{'])
        || ["your", "path/to", "path_to", "xxx"].iter().any(|part| path.contains(part))
}

/// Whether a path names a model's family: `llama-tokenizer` that of Llama-2-13B.
fn is_of_family(path: &str, model: &str) -> bool {
    let family = model.split('-').next().unwrap_or(model);
    path.to_ascii_lowercase().contains(&family.to_ascii_lowercase())
}

fn propose(table: &mut Table) {
    // If the shape, as far as it is stated, is a known model's, that model's vocabulary is likely; no model has a size
    // of 0.
    let shape = [Field::NumLayers, Field::HiddenSize, Field::NumAttentionHeads, Field::FfnHiddenSize]
        .map(|field| table.number(field));
    let own = is_of_own_words(table);
    let alike = catalog::vocabulary_of_shape(shape).filter(|_| !own);
    let groups = table.count(Field::NumQueryGroups).unwrap_or_else(|| table.number(Field::NumAttentionHeads));
    let biases =
        table.switch(Field::AddQkvBias) == Some(true) || table.switch(Field::AddBiasLinear) != Some(false);
    let attends_alike = catalog::vocabulary_of_attention(shape, groups, biases).is_some();
    let by_path = if own { stated_by_path(table.word(Field::VocabFile)) } else { None };
    let by_kind = catalog::vocabulary(table.word(Field::TokenizerType));
    let proposed =
        by_path.or(alike.map(|(_, size)| size)).or(by_kind.map(|(size, _)| size)).unwrap_or(PROPOSED);
    let note = match alike {
        Some((name, _)) => {
            format!("the vocabulary of {name}, whose shape this is; the text names no tokenizer")
        }
        None => "GPT-2's vocabulary, proposed because the text names no known tokenizer".to_owned(),
    };
    // Filled in and asked for: an answer is shown at once, marked as a default. Not if the text names a tokenizer,
    // which is unlikely to be GPT-2's: a vocabulary of 256k with a verdict for 50k would answer a different question.
    // Nor that of a known model with this shape, if its queries and keys differ or the file is custom: GPT-3's shape
    // has been trained with every possible vocabulary, and Llama 2's with those of Baichuan, Yi and the first Qwen.
    let fields = [Field::TokenizerModel, Field::VocabFile, Field::TokenizerType];
    let stated = fields.into_iter().find(|field| !table.word(*field).is_empty());
    let stated = stated.unwrap_or(Field::TokenizerModel);
    let named = table.word(stated).to_owned();
    let left_open = is_left_open(&named);
    let of_alike = alike.is_some_and(|(name, _)| is_of_family(&named, name));
    let is_file = stated != Field::TokenizerType && !left_open && !of_alike;
    let open = !named.is_empty() && (alike.is_none() || !attends_alike || is_file);
    if !open {
        table.fill(Field::VocabSize, Int(proposed), Origin::Default, &note);
    }
    // Naming the model answers this as well.
    let asks_model = table.questions.iter().any(|asked| asked.asks == Asked::Setting(Field::Model));
    if asks_model || !table.has(Field::NumLayers) && !table.has(Field::HiddenSize) {
        return;
    }
    if open {
        let message = match left_open {
            true => "the vocabulary is not stated, and the tokenizer's path is not given".to_owned(),
            false => format!("the vocabulary of {named} is not known here"),
        };
        let place = table.span(stated);
        let hint = table.way_to_state(&[Field::VocabSize]);
        table.say(Diagnostic::error(Code::MissingSetting, message), &hint, place);
    }
    table.ask(Question {
        asks: Asked::Setting(Field::VocabSize),
        prompt: "Vocabulary size? The text names no known tokenizer".to_owned(),
        choices: Vec::new(),
        proposal: Some(proposed.to_string()),
    });
}
