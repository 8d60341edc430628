//! What backward holds: the dense gradient of the word embedding.

use crate::transient::{gathered, residual};
use crate::{Saved, Symbols, Transient};
use shardscope_explain::Formula;
use shardscope_units::Bytes;

const SOURCE: &str = "megatron/core/tensor_parallel/layers.py:VocabParallelEmbedding, backward";

static WORDS: Formula = Formula::new("V·h·B", "The word embedding's gradient, every row of it.", SOURCE);

pub(crate) fn transients(x: &Symbols<'_>) -> Vec<Transient> {
    // The dense gradient is only computed for the table; if that is frozen, backward ends before it.
    if !x.recipe().tuning.embedding {
        return Vec::new();
    }
    let mut tensors = vec![residual(x)];
    tensors.extend(gathered(x, "gathered gradient"));
    tensors.push(Saved::new("word embedding gradient", &[x.v, x.h], x.width, &WORDS));
    vec![Transient::new("backward of the embedding", Bytes::ZERO, tensors)]
}
