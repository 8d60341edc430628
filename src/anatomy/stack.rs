//! The operators of a layer and of the ends of a chunk, in order.

use super::{Operator, Symbols};
use crate::plan::{Chunk, LayerKind};

/// The operators of one transformer layer, in order.
#[must_use]
pub fn layer_operators(x: &Symbols<'_>, kind: LayerKind) -> [Operator; 4] {
    let attention =
        if x.model().latent.is_some() { Operator::LatentAttention } else { Operator::SelfAttention };
    let mlp = match kind {
        LayerKind::Dense => Operator::Mlp,
        LayerKind::Moe => Operator::Experts,
    };
    [Operator::InputNorm, attention, Operator::PreMlpNorm, mlp]
}

/// What a chunk holds before and behind its layers, in order; MTP depths not counted.
#[must_use]
pub fn chunk_ends(chunk: &Chunk) -> (Vec<Operator>, Vec<Operator>) {
    let before = if chunk.embedding { vec![Operator::Embedding] } else { Vec::new() };
    let behind =
        if chunk.output_layer { vec![Operator::FinalNorm, Operator::OutputLayer] } else { Vec::new() };
    (before, behind)
}
