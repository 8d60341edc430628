//! Files of tokenizers by their names.

use crate::Argument;
use shardscope_catalog::vocabulary;
use shardscope_plan::Field;

/// A tokenizer's file that is known by its own name is the same in a folder that the environment gives
/// (`$PWD/dataset/gpt2-vocab.json`).
pub(super) fn by_its_name(field: Field, value: Argument) -> Argument {
    let of_tokenizer = matches!(field, Field::VocabFile | Field::TokenizerModel);
    match value.text.rsplit_once('/').filter(|_| of_tokenizer && value.hole.is_some()) {
        Some((_, name)) if !name.contains('$') && vocabulary(name).is_some() => {
            Argument { text: name.to_owned(), hole: None, ..value }
        }
        _ => value,
    }
}
