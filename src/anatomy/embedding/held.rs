//! What backward holds: the dense gradient of the word embedding.

use crate::anatomy::held::{gathered, residual};
use crate::anatomy::{Held, Saved, Symbols};
use crate::explain::Formula;
use crate::quantity::Bytes;

const SOURCE: &str = "megatron/core/tensor_parallel/layers.py:VocabParallelEmbedding, backward";

static WORDS: Formula = Formula::new("V·h·B", "The word embedding's gradient, every row of it.", SOURCE);

pub(in crate::anatomy) fn held(x: &Symbols<'_>) -> Vec<Held> {
    let mut tensors = vec![residual(x)];
    tensors.extend(gathered(x, "gathered gradient"));
    tensors.push(Saved::new("word embedding gradient", &[x.v, x.h], x.width, &WORDS));
    vec![Held::new("backward of the embedding", Bytes::ZERO, tensors)]
}
