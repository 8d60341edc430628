//! The weights of a chunk in the order in which a framework's gradient buffers or buckets take them up.

use super::modules_in_order::{Order, in_order};
use super::{Created, SectionKind, Symbols, Weight, sections};
use shardscope_plan::{Chunk, LayerKind};

/// Weights of a chunk, one list per kind of section, and the order of the sections.
#[derive(Clone, Debug, PartialEq)]
pub struct Creation {
    kinds: Vec<(SectionKind, Vec<Weight>)>,
    order: Vec<usize>,
}

impl Creation {
    /// The weights of `chunk` in this order.
    #[must_use]
    pub fn new(x: &Symbols<'_>, chunk: &Chunk, order: Order) -> Self {
        let mut kinds: Vec<(SectionKind, Vec<Weight>)> = Vec::new();
        let mut counts = Vec::new();
        for section in sections(x, chunk) {
            let mut sorted: Vec<Weight> = section.weights(x).collect();
            if order == Order::Megatron {
                sorted.sort_by_key(|weight| turn(x, weight));
            } else {
                sorted = in_order(x, &sorted, order);
            }
            counts.push(section.times);
            kinds.push((section.kind, sorted));
        }
        let place = |kind| kinds.iter().position(|(other, _)| *other == kind);
        let mut places: Vec<usize> = Vec::new();
        let times = |place: usize| counts.get(place).copied().unwrap_or(0);
        let repeat = |places: &mut Vec<usize>, kind| {
            let repeated = place(kind).into_iter();
            places.extend(repeated.flat_map(|place| (0..times(place)).map(move |_| place)));
        };
        // Modules of transformers build a tower before the decoder, and T5 its encoder behind the embedding that both read
        // (`modeling_t5.py:T5Model.__init__`).
        repeat(&mut places, SectionKind::VisionLayer);
        repeat(&mut places, SectionKind::VisionEnds);
        // `GPTModel.__init__` builds the embedding before the decoder, including a later stage's for multi-token
        // prediction.
        places.extend(place(SectionKind::Embedding).or(place(SectionKind::MtpEmbedding)));
        repeat(&mut places, SectionKind::FirstEncoderLayer);
        repeat(&mut places, SectionKind::EncoderLayer);
        repeat(&mut places, SectionKind::EncoderEnds);
        let layers = LayerKind::ALL.map(|kind| place(SectionKind::Layer(kind)));
        // Layers in front of the first that trains are frozen and have no gradients.
        let frozen = x.recipe().tuning.frozen_layers(x.model().num_layers);
        let trained = chunk.layers.clone().filter(|index| *index >= frozen);
        let kinds_in_order = trained.map(|index| x.model().layer_kind(index));
        places.extend(kinds_in_order.filter_map(|kind| layers[kind.index()]));
        places.extend(place(SectionKind::FinalNorm));
        repeat(&mut places, SectionKind::Mtp);
        places.extend(place(SectionKind::OutputLayer));
        Self { kinds, order: places }
    }

    /// The weights from the first to the last.
    pub fn forwards(&self) -> impl Iterator<Item = &Weight> {
        let sections = self.order.iter().filter_map(|place| self.kinds.get(*place));
        sections.flat_map(|(_, weights)| weights)
    }

    /// The weights from the last to the first.
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
