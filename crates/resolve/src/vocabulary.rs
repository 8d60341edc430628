//! The vocabulary: stated, known by its tokenizer, or asked for; and its padding.

use super::table::Table;
use crate::SettingValue::Int;
use crate::{Origin, Question};
use shardscope_catalog as catalog;
use shardscope_plan::{Field, VocabPadding};
use shardscope_source::{Code, Diagnostic};

/// GPT-2's vocabulary, proposed where nothing tells another (Radford et al. 2019; Megatron-LM's examples use it).
const PROPOSED: u64 = 50_257;

/// Rows of the embedding (`vocab_utils.py`: a multiple of `make_vocab_size_divisible_by` times the tensor size).
pub(super) fn padded(table: &mut Table) -> Option<(u64, Option<VocabPadding>)> {
    // A stated padded size is the embedding itself: nothing is rounded, and TP does not change it.
    if let Some(padded) = table.count(Field::PaddedVocabSize) {
        return Some((padded, None));
    }
    let known = tokenizer(table);
    if !table.has(Field::VocabSize) {
        // A stated size wins over the tokenizer's, as in Megatron (`--vocab-size`).
        match known {
            Some((size, name)) => table.fill(Field::VocabSize, Int(size), Origin::Catalog, &name),
            None => propose(table),
        }
    }
    let mut size = table.count(Field::VocabSize)?;
    if table.is_old() && table.says(Field::TokenizerType, "NullTokenizer") {
        // Up to core 0.17 the null tokenizer appended an end-of-document token of its own.
        size += 1;
    }
    if table.switch(Field::PadVocabSize) == Some(false) {
        // Stated as a setting too, so that the table shows what the embedding has.
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

/// The vocabulary of the tokenizer that the text names, and how it is known.
fn tokenizer(table: &Table) -> Option<(u64, String)> {
    // In this order: a model or file says more than a type of tokenizer.
    let files = [Field::TokenizerModel, Field::VocabFile];
    let by_file = files.iter().find_map(|field| catalog::vocabulary(table.word(*field)));
    // Llama 2's type is a class that reads any SentencePiece file (`Llama2Tokenizer` of Megatron-LM's `tokenizer.py`): the file has the
    // vocabulary, and is not the one of Llama 2 because of the class.
    let kind = table.word(Field::TokenizerType);
    by_file.or_else(|| catalog::vocabulary(kind).filter(|_| !is_of_a_file(table)))
}

/// Whether the type of tokenizer has its vocabulary in a file that is named beside it: Llama 2's always, GPT-2's where its
/// `--vocab-file` is another's (`GPT2BPETokenizer` reads any such file).
fn is_of_a_file(table: &Table) -> bool {
    let kind = table.word(Field::TokenizerType);
    kind.eq_ignore_ascii_case("Llama2Tokenizer") || is_of_own_words(table)
}

/// Whether GPT-2's tokenizer reads words of somebody's own.
fn is_of_own_words(table: &Table) -> bool {
    let (kind, file) = (table.word(Field::TokenizerType), table.word(Field::VocabFile));
    kind.eq_ignore_ascii_case("GPT2BPETokenizer") && !file.is_empty() && catalog::vocabulary(file).is_none()
}

/// The size that the path of a tokenizer tells (`nordic_tokenizer_131072/vocab.json`).
fn told_by_path(path: &str) -> Option<u64> {
    /// No tokenizer of a language model has fewer words, or more.
    const SIZES: std::ops::RangeInclusive<u64> = 8_000..=1_000_000;
    let mut words = path.split(|c: char| !c.is_ascii_alphanumeric());
    words.find_map(|word| word.parse().ok().filter(|size| word.len() > 4 && SIZES.contains(size)))
}

/// Whether a path is one that the reader of an example is to put in (`/path/to/tokenizer`, `your tokenizer path`).
fn is_left_open(path: &str) -> bool {
    let path = path.to_ascii_lowercase();
    path.starts_with(['<', '$', '{'])
        || ["your", "path/to", "path_to", "xxx"].iter().any(|part| path.contains(part))
}

/// Whether a path names the family of a model: `llama-tokenizer` that of Llama-2-13B.
fn is_of_family(path: &str, model: &str) -> bool {
    let family = model.split('-').next().unwrap_or(model);
    path.to_ascii_lowercase().contains(&family.to_ascii_lowercase())
}

fn propose(table: &mut Table) {
    // A shape that is a known model's: its vocabulary is the likely one.
    // As far as it is stated; a size of 0 is of no model.
    let shape = [Field::NumLayers, Field::HiddenSize, Field::NumAttentionHeads, Field::FfnHiddenSize]
        .map(|field| table.number(field));
    let own = is_of_own_words(table);
    let alike = catalog::vocabulary_of_shape(shape).filter(|_| !own);
    let groups = table.count(Field::NumQueryGroups).unwrap_or_else(|| table.number(Field::NumAttentionHeads));
    let biases =
        table.switch(Field::AddQkvBias) == Some(true) || table.switch(Field::AddBiasLinear) != Some(false);
    let attends_alike = catalog::vocabulary_of_attention(shape, groups, biases).is_some();
    let by_path = if own { told_by_path(table.word(Field::VocabFile)) } else { None };
    let by_kind = catalog::vocabulary(table.word(Field::TokenizerType));
    let proposed =
        by_path.or(alike.map(|(_, size)| size)).or(by_kind.map(|(size, _)| size)).unwrap_or(PROPOSED);
    let note = match alike {
        Some((name, _)) => {
            format!("the vocabulary of {name}, whose shape this is; the text names no tokenizer")
        }
        None => "GPT-2's vocabulary, proposed where the text names no tokenizer that is known".to_owned(),
    };
    // Filled and asked for: an answer is shown at once, marked as a default. Not where the text names a tokenizer, which is hardly
    // GPT-2's: a vocabulary of 256k under a verdict for 50k would answer another question. Nor is it a known model's whose shape
    // this is, where queries and keys are not that model's, or the file is somebody's own: GPT-3's shape has been trained with
    // every vocabulary there is, and Llama 2's with those of Baichuan, Yi and the first Qwen.
    let fields = [Field::TokenizerModel, Field::VocabFile, Field::TokenizerType];
    let told = fields.into_iter().find(|field| !table.word(*field).is_empty());
    let told = told.unwrap_or(Field::TokenizerModel);
    let named = table.word(told).to_owned();
    let left_open = is_left_open(&named);
    let of_alike = alike.is_some_and(|(name, _)| is_of_family(&named, name));
    let is_file = told != Field::TokenizerType && !left_open && !of_alike;
    let open = !named.is_empty() && (alike.is_none() || !attends_alike || is_file);
    if !open {
        table.fill(Field::VocabSize, Int(proposed), Origin::Default, &note);
    }
    // Whoever names the model answers this as well.
    if !table.has(Field::NumLayers) && !table.has(Field::HiddenSize) {
        return;
    }
    if open {
        let message = match left_open {
            true => "the vocabulary is not stated, and the tokenizer's place is left open".to_owned(),
            false => format!("the vocabulary of {named} is not known here"),
        };
        let place = table.span(told);
        let hint = table.way_to_state(&[Field::VocabSize]);
        table.say(Diagnostic::error(Code::MissingSetting, message), &hint, place);
    }
    table.ask(Question {
        name: Field::VocabSize.name().to_owned(),
        prompt: "Vocabulary size? The text names no known tokenizer".to_owned(),
        choices: Vec::new(),
        proposal: Some(proposed.to_string()),
    });
}
