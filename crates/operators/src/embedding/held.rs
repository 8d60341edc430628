//! What backward holds: the dense gradient of the word embedding.

use crate::held::{gathered, residual};
use crate::{Held, Saved, Symbols};
use shardscope_explain::Formula;
use shardscope_units::Bytes;

const SOURCE: &str = "megatron/core/tensor_parallel/layers.py:VocabParallelEmbedding, backward";

static WORDS: Formula = Formula::new("V·h·B", "The word embedding's gradient, every row of it.", SOURCE);

pub(crate) fn held(x: &Symbols<'_>) -> Vec<Held> {
    if !x.recipe().tuning.embedding {
        return Vec::new();
    }
    let mut tensors = vec![residual(x)];
    tensors.extend(gathered(x, "gathered gradient"));
    tensors.push(Saved::new("word embedding gradient", &[x.v, x.h], x.width, &WORDS));
    vec![Held::new("backward of the embedding", Bytes::ZERO, tensors)]
}
