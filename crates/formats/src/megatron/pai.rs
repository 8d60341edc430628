//! How Pai-Megatron-Patch combines its tokenizer options. Sources:
//! `megatron_patch/tokenizer/__init__.py`, `megatron_patch/arguments.py`,
//! `examples/bloom/finetune_megatron_bloom.py` (samples padded to `--max-padding-length`).

use crate::{Argument, Effect, Found, NotModelled, Origin, Reading};
use shardscope_plan::Field;

/// Tokenizers with a fixed number of embedding rows, whatever `--make-vocab-size-divisible-by`
/// and the tensor-parallel size are.
const ROWS: [(&str, &str); 4] = [
    ("BloomTokenizerFromHF", "250880"),
    ("ChatGLMTokenizerFromHF", "130528"),
    ("GLM10BZHTokenizerFromHF", "50048"),
    ("IcetkGLM130BTokenizer", "150528"),
];
/// Tokenizers with this many tokens, to which `--extra-vocab-size` is added without padding: the entries of Qwen 2's
/// `vocab.json`, which Qwen 3 shares.
const WORDS: [(&str, u64); 3] =
    [("Qwen2Tokenizer", 151_643), ("Qwen3Tokenizer", 151_643), ("Qwen2VLTokenizer", 151_643)];

/// States the number of embedding rows; stops the verdict if options make it unknown, or pad samples to another length.
pub(super) fn together(reading: &mut Reading, words: &[Argument]) {
    let of = |flag: &str| {
        let at = words.iter().rposition(|word| word.text == flag)?;
        words.get(at + 1).filter(|value| !value.text.starts_with("--"))
    };
    let extra = of("--extra-vocab-size");
    if let Some(named) = of("--patch-tokenizer-type") {
        let kind = named.text.as_str();
        let fixed = ROWS.iter().find(|(known, _)| *known == kind).map(|(_, rows)| (*rows).to_owned());
        let more =
            extra.filter(|value| value.hole.is_none()).and_then(|value| value.text.parse::<u64>().ok());
        let sum = WORDS
            .iter()
            .find(|(known, _)| *known == kind)
            .and_then(|(_, tokens)| Some(tokens.checked_add(more?)?.to_string()));
        if let Some(rows) = fixed.or(sum).filter(|_| reading.value(Field::PaddedVocabSize).is_none()) {
            let found = Found::new(Field::PaddedVocabSize, rows, Origin::Derived);
            let note = "the embedding rows that Pai-Megatron-Patch adds for this tokenizer";
            reading.take(found.by("--patch-tokenizer-type", named.span).note(note));
        }
    }
    let known = reading.value(Field::PaddedVocabSize).is_some();
    if let Some(value) = extra.filter(|value| !known && value.hole.is_none() && value.text != "0") {
        let what = "padding rows of the embedding for a tokenizer that is not known here";
        let item = NotModelled::new("--extra-vocab-size", &value.text, Effect::Model, what);
        reading.not_modelled.push(item.at_some(value.span));
    }
    let length = of("--max-padding-length").filter(|value| value.hole.is_none());
    let stated = reading.value(Field::SeqLength).map(str::to_owned);
    if let Some(value) = length.filter(|value| stated.is_some_and(|stated| stated != value.text)) {
        let what = "samples padded to a length other than --seq-length";
        let item = NotModelled::new("--max-padding-length", &value.text, Effect::Memory, what);
        reading.not_modelled.push(item.at_some(value.span));
    }
}
