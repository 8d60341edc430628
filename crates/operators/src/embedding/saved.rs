//! Tensors kept for backward.

use crate::{Saved, Symbols};
use shardscope_explain::Formula;
use shardscope_plan::PositionEmbedding;

const EMBEDDING: &str = "megatron/core/models/common/embeddings/language_model_embedding.py";
const VOCABULARY: &str = "megatron/core/tensor_parallel/layers.py:VocabParallelEmbedding";
/// Bytes of a torch index (int64).
const INDEX: u64 = 8;

static TOKENS: Formula = Formula::new("8·n", "Token ids, int64.", EMBEDDING);
static MASK: Formula =
    Formula::new("n", "Which tokens are in this rank's shard of the vocabulary, one byte each.", VOCABULARY);
static POSITIONS: Formula = Formula::new("8·n", "Position ids, int64.", EMBEDDING);
static DROPOUT: Formula = Formula::new("S·h", "Dropout mask of the embedding, one byte each.", EMBEDDING);

pub(crate) fn saved(x: &Symbols<'_>) -> Vec<Saved> {
    // Only the gradient of the table reads the token ids: over a frozen one autograd records nothing.
    if !x.recipe().tuning.embedding {
        return Vec::new();
    }
    let mut out = vec![Saved::new("token ids", &[x.b, x.s], INDEX, &TOKENS)];
    // A rank masks ids outside of its shard of the vocabulary; with the whole table there is no mask (`layers.py:VocabParallelEmbedding.forward`).
    if x.t > 1 {
        out.push(Saved::new("vocabulary mask", &[x.b, x.s], 1, &MASK));
    }
    if x.model().position_embedding == PositionEmbedding::LearnedAbsolute {
        out.push(Saved::new("position ids", &[x.b, x.s], INDEX, &POSITIONS));
    }
    if x.recipe().hidden_dropout {
        out.push(Saved::new("embedding dropout mask", &[x.s_local, x.h], 1, &DROPOUT));
    }
    out
}
