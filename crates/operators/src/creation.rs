//! The weights of a chunk in the order in which Megatron creates them, which determines each one's place in the
//! gradient buffer.

use super::{Created, SectionKind, Symbols, Weight, sections};
use shardscope_plan::{Chunk, LayerKind};

/// Weights of a chunk, one list per kind of section, and the order of the sections.
#[derive(Clone, Debug, PartialEq)]
pub struct Creation {
    kinds: Vec<(SectionKind, Vec<Weight>)>,
    order: Vec<usize>,
}

impl Creation {
    /// The weights of `chunk`.
    #[must_use]
    pub fn new(x: &Symbols<'_>, chunk: &Chunk) -> Self {
        let mut kinds: Vec<(SectionKind, Vec<Weight>)> = Vec::new();
        let mut counts = Vec::new();
        for section in sections(x, chunk) {
            let mut sorted: Vec<Weight> = section.weights(x).collect();
            sorted.sort_by_key(|weight| turn(x, weight));
            counts.push(section.times);
            kinds.push((section.kind, sorted));
        }
        let place = |kind| kinds.iter().position(|(other, _)| *other == kind);
        let mut order: Vec<usize> = Vec::new();
        // `GPTModel.__init__` builds the embedding before the decoder, including a later stage's for multi-token
        // prediction.
        order.extend(place(SectionKind::Embedding).or(place(SectionKind::MtpEmbedding)));
        let layers = LayerKind::ALL.map(|kind| place(SectionKind::Layer(kind)));
        let kinds_in_order = chunk.layers.clone().map(|index| x.model().layer_kind(index));
        order.extend(kinds_in_order.filter_map(|kind| layers[kind.index()]));
        order.extend(place(SectionKind::FinalNorm));
        if let Some(mtp) = place(SectionKind::Mtp) {
            let depths = counts.get(mtp).copied().unwrap_or(0);
            order.extend((0..depths).map(|_| mtp));
        }
        order.extend(place(SectionKind::OutputLayer));
        Self { kinds, order }
    }

    /// The weights from the last created to the first.
    pub fn backwards(&self) -> impl Iterator<Item = &Weight> {
        let sections = self.order.iter().rev().filter_map(|place| self.kinds.get(*place));
        sections.flat_map(|(_, weights)| weights.iter().rev())
    }
}

/// A weight's position among those of its section. Attention creates its output projection first; Transformer Engine
/// holds the input norm in the QKV projection, so it comes after the output projection
/// (`megatron/core/transformer/attention.py`, `megatron/core/models/gpt/gpt_layer_specs.py`).
fn turn(x: &Symbols<'_>, weight: &Weight) -> u8 {
    let fused_norm = x.model().latent.is_none() && x.recipe().software.semantics().norm_in_projection;
    match weight.created {
        Created::BeforeLayer => 0,
        Created::WithInputNorm if !fused_norm => 1,
        Created::FirstInAttention => 2,
        Created::WithInputNorm => 3,
        Created::Listed => 4,
        Created::Last => 5,
    }
}
