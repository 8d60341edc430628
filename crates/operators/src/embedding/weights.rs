//! Weights (`megatron/core/models/common/embeddings/language_model_embedding.py`): the word embedding is sharded by
//! vocabulary, a learned position table replicated on every tensor rank.

use crate::{Account, Symbols, Weight, WeightPart};
use shardscope_plan::PositionEmbedding;

pub(crate) fn weights(x: &Symbols<'_>) -> Vec<Weight> {
    // The encoder looks up in the decoder's table.
    if x.encodes {
        return Vec::new();
    }
    let model = x.model();
    let words =
        Weight::column("word_embeddings.weight", Account::Embedding, [model.padded_vocab_size, x.h], x.t);
    let mut out = vec![Weight { linear: false, part: WeightPart::WordEmbedding, ..words }];
    if model.position_embedding == PositionEmbedding::LearnedAbsolute {
        let shape = [model.max_position_embeddings, x.h];
        out.push(Weight::replicated("position_embeddings.weight", Account::Embedding, &shape));
    }
    if model.arrangement.embedding_norm && x.recipe().software.semantics().eager_modules {
        for name in ["word_embeddings_layernorm.weight", "word_embeddings_layernorm.bias"] {
            out.push(Weight::replicated(name, Account::Embedding, &[x.h]));
        }
    }
    out
}
