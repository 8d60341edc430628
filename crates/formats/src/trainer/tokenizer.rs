//! Tokenizer vocabularies that differ from the model's.

use super::dialect::Dialect;
use crate::leaves::{Leaf, Leaves};
use crate::{Asked, Found, Origin, Question};
use shardscope_catalog as catalog;
use shardscope_plan::Field;

/// Asks for the number of embedding rows if the tokenizer is not the model's and not known to fit: programs for causal
/// language models resize the embedding to the tokenizer (`run_clm.py` of transformers' examples, and programs based on
/// it: `model.resize_token_embeddings(len(tokenizer))`). Runs once the model is known.
pub(super) fn read(leaves: &mut Leaves<'_>, dialect: Dialect) {
    let named = leaves.first(&["tokenizer_name_or_path", "tokenizer_name"]);
    let Some(tokenizer) = named.filter(|leaf| leaf.hole.is_none() && dialect == Dialect::Transformers) else {
        return;
    };
    let Some(model) = leaves.get("model_name_or_path") else { return };
    let Some(rows) = leaves.reading.value(Field::VocabSize).and_then(|rows| rows.parse::<u64>().ok()) else {
        return;
    };
    let fits = catalog::vocabulary(&tokenizer.value).is_some_and(|(tokens, _)| tokens <= rows);
    if fits || is_same(model, tokenizer) {
        return;
    }
    let mut found = Found::new(Field::VocabSize, String::new(), Origin::Script);
    found = found.by(&tokenizer.path, tokenizer.span);
    found.hole = Some(format!("the tokenizer {}", tokenizer.value));
    leaves.reading.keep(&|found| found.field != Field::VocabSize);
    leaves.reading.take(found);
    leaves.reading.questions.push(Question {
        asks: Asked::Setting(Field::VocabSize),
        prompt: format!(
            "Rows of the embedding? The tokenizer {} is not that of {}, which has {rows}, and programs make the embedding as long as the \
             tokenizer",
            tokenizer.value, model.value
        ),
        choices: Vec::new(),
        proposal: Some(rows.to_string()),
    });
}

/// Whether both belong to the same model, by name without its folders.
fn is_same(model: &Leaf, tokenizer: &Leaf) -> bool {
    let name = |leaf: &Leaf| {
        let path = leaf.value.trim_end_matches('/');
        path.rsplit('/').next().unwrap_or(path).to_ascii_lowercase()
    };
    name(model) == name(tokenizer)
}
