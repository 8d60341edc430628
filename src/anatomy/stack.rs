//! The operators of a layer and of a chunk, in order.

use super::{Operator, Symbols, Weight};
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

/// What a run of operators in a chunk is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SectionKind {
    /// Word and position embedding.
    Embedding,
    /// A transformer layer.
    Layer(LayerKind),
    /// The norm behind the last layer.
    FinalNorm,
    /// The word embedding once more, where multi-token prediction stands without it. It has weights only:
    /// what it keeps and does belongs to each depth.
    MtpEmbedding,
    /// One depth of multi-token prediction: projection, transformer layer, and the output layer's part in it.
    Mtp,
    /// Output layer and loss.
    OutputLayer,
}

/// Operators of a chunk that come together, `times` over.
#[derive(Clone, Debug, PartialEq)]
pub struct Section {
    /// What it is.
    pub kind: SectionKind,
    /// How often it comes in the chunk.
    pub times: u64,
    /// Its operators, in order.
    pub operators: Vec<Operator>,
}

impl Section {
    fn new(kind: SectionKind, times: u64, operators: &[Operator]) -> Self {
        Self { kind, times, operators: operators.to_vec() }
    }

    /// The weights of one of it.
    #[must_use]
    pub fn weights(&self, x: &Symbols<'_>) -> Vec<Weight> {
        let weights = self.operators.iter().flat_map(|operator| operator.weights(x));
        if self.kind == SectionKind::MtpEmbedding {
            weights.map(Weight::as_copy).collect()
        } else {
            weights.collect()
        }
    }
}

/// What a chunk is made of, in order, equal layers together.
#[must_use]
pub fn sections(x: &Symbols<'_>, chunk: &Chunk) -> Vec<Section> {
    let mut out = Vec::with_capacity(6);
    if chunk.embedding {
        out.push(Section::new(SectionKind::Embedding, 1, &[Operator::Embedding]));
    }
    let kinds = chunk.layers.clone().map(|index| x.model().layer_kind(index));
    let all = chunk.layers.end.saturating_sub(chunk.layers.start);
    let moe = kinds.map(|kind| u64::from(kind == LayerKind::Moe)).sum();
    for (kind, times) in [(LayerKind::Dense, all.saturating_sub(moe)), (LayerKind::Moe, moe)] {
        if times > 0 {
            out.push(Section::new(SectionKind::Layer(kind), times, &layer_operators(x, kind)));
        }
    }
    if has_final_norm(x, chunk) {
        out.push(Section::new(SectionKind::FinalNorm, 1, &[Operator::FinalNorm]));
    }
    out.extend(mtp_sections(x, chunk));
    if chunk.output_layer {
        out.push(Section::new(SectionKind::OutputLayer, 1, &[Operator::OutputLayer]));
    }
    out
}

/// The final norm stands before the output layer; with multi-token prediction behind the last layer
/// (`megatron/core/transformer/transformer_block.py:has_final_layernorm_in_this_stage`).
fn has_final_norm(x: &Symbols<'_>, chunk: &Chunk) -> bool {
    if x.model().mtp_num_layers == 0 {
        chunk.output_layer
    } else {
        chunk.layers.start < chunk.layers.end && chunk.layers.end == x.model().num_layers
    }
}

/// A depth of multi-token prediction holds a layer of the last decoder layer's kind.
fn mtp_sections(x: &Symbols<'_>, chunk: &Chunk) -> Vec<Section> {
    let mut out = Vec::new();
    if chunk.mtp_layers > 0 {
        if !chunk.embedding {
            out.push(Section::new(SectionKind::MtpEmbedding, 1, &[Operator::Embedding]));
        }
        let kind = x.model().layer_kind(x.model().num_layers.saturating_sub(1));
        let mut operators = vec![Operator::MtpProjection];
        operators.extend(layer_operators(x, kind));
        out.push(Section::new(SectionKind::Mtp, chunk.mtp_layers, &operators));
    }
    out
}
