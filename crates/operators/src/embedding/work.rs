//! Arithmetic of the embedding: a look-up in forward, a scatter-add in backward, positions and dropout.

use crate::shared::kernel;
use crate::{Symbols, Work};
use shardscope_plan::PositionEmbedding;
use shardscope_units::Bytes;

pub(crate) fn work(x: &Symbols<'_>) -> Vec<Work> {
    let whole = x.n * x.h;
    let gradient = x.recipe().grads_dtype.width();
    // Backward reads the gradient, and reads and writes the affected rows of the table.
    let mut work = vec![kernel(
        "word_embeddings",
        [x.bytes(2 * whole), Bytes::new(whole * (x.width + 2 * gradient))],
        [2, 2],
    )];
    if x.model().position_embedding == PositionEmbedding::LearnedAbsolute {
        work.push(kernel("position_embeddings", [x.bytes(3 * whole), x.bytes(2 * whole)], [1, 1]));
    }
    if x.recipe().hidden_dropout {
        let moved = Bytes::new(x.s_local * x.h * (2 * x.width + 1));
        work.push(kernel("embedding_dropout", [moved, moved], [1, 1]));
    }
    work
}
