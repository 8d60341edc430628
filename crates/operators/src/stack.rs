//! The operators of a layer and of a chunk, in order.

use super::{EncoderPart, Message, Operator, Symbols, Weight, Work};
use shardscope_plan::{Chunk, FeedForward, LayerKind, Mixer, Stage};
use smallvec::{SmallVec, smallvec};

/// The operators of a section, in order; rarely more than a depth of multi-token prediction has.
pub type Operators = SmallVec<[Operator; 8]>;

/// The operators of one transformer layer, in order.
#[must_use]
pub fn layer_operators(x: &Symbols<'_>, kind: LayerKind) -> Operators {
    let attention =
        if x.model().latent.is_some() { Operator::LatentAttention } else { Operator::SelfAttention };
    let linear = x.model().mixers.linear.map(|linear| Operator::Linear(linear.kind));
    let mut operators = Operators::new();
    if kind.mixer != Mixer::None {
        operators.push(Operator::InputNorm);
    }
    match kind.mixer {
        Mixer::Attention => operators.push(attention),
        Mixer::Windowed => operators.push(Operator::WindowedAttention),
        Mixer::Borrowed => operators.push(Operator::BorrowedAttention),
        Mixer::BorrowedWindowed => operators.push(Operator::BorrowedWindowedAttention),
        Mixer::Linear => operators.extend(linear),
        // One norm stands before both, which read its output in parallel (Falcon-H1's decoder layer).
        Mixer::Both => {
            operators.push(attention);
            operators.extend(linear);
        }
        Mixer::None => {}
    }
    if x.model().encoder.is_some() {
        operators.extend([Operator::CrossNorm, Operator::CrossAttention]);
    }
    match kind.feed_forward {
        FeedForward::Dense => {
            let wide = kind.mixer.borrows() && x.model().arrangement.double_wide;
            operators.extend([Operator::PreMlpNorm, if wide { Operator::WideMlp } else { Operator::Mlp }]);
        }
        FeedForward::Moe => {
            if x.model().arrangement.dense_beside_experts {
                operators.extend([Operator::PreMlpNorm, Operator::Mlp]);
            }
            operators.extend([Operator::PreExpertsNorm, Operator::Experts]);
        }
        FeedForward::None => {}
    }
    if x.model().arrangement.layer_inputs.is_some() {
        operators.push(Operator::LayerInput);
    }
    operators
}

fn encoder_parts<const N: usize>(parts: [EncoderPart; N], first: bool) -> Operators {
    parts.into_iter().map(|part| Operator::Encoder { part, first }).collect()
}

/// The operators of a layer of the encoder.
fn encoder_layer(first: bool) -> Operators {
    use EncoderPart::{Attention, InputNorm, Mlp, PreMlpNorm};
    encoder_parts([InputNorm, Attention, PreMlpNorm, Mlp], first)
}

/// The kind of a group of operators in a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SectionKind {
    /// Word and position embedding.
    Embedding,
    /// A layer of a frozen vision tower.
    VisionLayer,
    /// The rest of the tower, and its projector.
    VisionEnds,
    /// The encoder's first layer.
    FirstEncoderLayer,
    /// Each of its other layers.
    EncoderLayer,
    /// What the encoder has outside of its layers.
    EncoderEnds,
    /// A transformer layer.
    Layer(LayerKind),
    /// The norm after the last layer.
    FinalNorm,
    /// A copy of the word embedding, if multi-token prediction is on a stage without it. It has weights only: its
    /// saved tensors and work belong to each depth.
    MtpEmbedding,
    /// One depth of multi-token prediction: projection, transformer layer, and the output layer's part in it.
    Mtp,
    /// Output layer and loss.
    OutputLayer,
}

impl SectionKind {
    /// Every kind, in the order of a chunk, with a vision tower or an encoder last, which runs before all others.
    pub const ALL: [Self; LayerKind::ALL.len() + 10] = {
        let mut all = [Self::Embedding; LayerKind::ALL.len() + 10];
        let mut at = 0;
        while at < LayerKind::ALL.len() {
            all[at + 1] = Self::Layer(LayerKind::ALL[at]);
            at += 1;
        }
        let rest = [
            Self::FinalNorm,
            Self::MtpEmbedding,
            Self::Mtp,
            Self::OutputLayer,
            Self::VisionLayer,
            Self::VisionEnds,
            Self::EncoderLayer,
            Self::FirstEncoderLayer,
            Self::EncoderEnds,
        ];
        at = 0;
        while at < rest.len() {
            all[LayerKind::ALL.len() + 1 + at] = rest[at];
            at += 1;
        }
        all
    };

    /// Its place in [`SectionKind::ALL`].
    #[must_use]
    pub const fn index(self) -> usize {
        match self {
            Self::Embedding => 0,
            Self::Layer(kind) => 1 + kind.index(),
            Self::FinalNorm => LayerKind::ALL.len() + 1,
            Self::MtpEmbedding => LayerKind::ALL.len() + 2,
            Self::Mtp => LayerKind::ALL.len() + 3,
            Self::OutputLayer => LayerKind::ALL.len() + 4,
            Self::VisionLayer => LayerKind::ALL.len() + 5,
            Self::VisionEnds => LayerKind::ALL.len() + 6,
            Self::EncoderLayer => LayerKind::ALL.len() + 7,
            Self::FirstEncoderLayer => LayerKind::ALL.len() + 8,
            Self::EncoderEnds => LayerKind::ALL.len() + 9,
        }
    }

    /// Whether it comes behind the last layer.
    #[must_use]
    pub const fn follows_layers(self) -> bool {
        matches!(self, Self::FinalNorm | Self::MtpEmbedding | Self::Mtp | Self::OutputLayer)
    }

    /// The operators of one such section, in order.
    #[must_use]
    pub fn operators(self, x: &Symbols<'_>) -> Operators {
        match self {
            Self::Embedding if x.recipe().tuning.projector => {
                smallvec![Operator::Embedding, Operator::Projector]
            }
            Self::Embedding if x.model().arrangement.layer_inputs.is_some() => {
                smallvec![Operator::Embedding, Operator::LayerInputs]
            }
            Self::Embedding if x.model().encoder.is_some() => {
                smallvec![Operator::Embedding, Operator::Positions]
            }
            Self::Embedding | Self::MtpEmbedding => smallvec![Operator::Embedding],
            Self::Layer(kind) => layer_operators(x, kind),
            Self::FinalNorm => smallvec![Operator::FinalNorm],
            Self::Mtp => {
                // A depth contains a layer of the last decoder layer's kind.
                let kind = x.model().layer_kind(x.model().num_layers.saturating_sub(1));
                let mut operators: Operators = smallvec![Operator::MtpProjection];
                operators.extend(layer_operators(x, kind));
                operators
            }
            Self::OutputLayer => smallvec![Operator::OutputLayer],
            Self::VisionLayer => smallvec![Operator::VisionLayer],
            Self::VisionEnds => smallvec![Operator::VisionEnds],
            Self::EncoderLayer => encoder_layer(false),
            Self::FirstEncoderLayer => encoder_layer(true),
            Self::EncoderEnds => {
                encoder_parts([EncoderPart::Embedding, EncoderPart::Positions, EncoderPart::FinalNorm], false)
            }
        }
    }

    /// The weights of one such section.
    pub fn weights(self, x: &Symbols<'_>) -> impl Iterator<Item = Weight> {
        let copy = self == Self::MtpEmbedding;
        let weights = self.operators(x).into_iter().flat_map(move |operator| operator.weights(x));
        weights.map(move |weight| Weight { copy: weight.copy || copy, ..weight })
    }
}

/// The arithmetic of `operators`, one of each, in order.
#[must_use]
pub fn work_of(x: &Symbols<'_>, operators: &[Operator]) -> Vec<Work> {
    let mut work = Vec::new();
    for operator in operators {
        work.extend(operator.work(x));
    }
    work
}

/// What `operators` send, one of each, in order.
#[must_use]
pub fn messages_of(x: &Symbols<'_>, operators: &[Operator]) -> Vec<Message> {
    let mut messages = Vec::new();
    for operator in operators {
        messages.extend(operator.messages(x));
    }
    messages
}

/// Operators of a chunk that form a unit, repeated `times` times.
#[derive(Clone, Debug, PartialEq)]
pub struct Section {
    /// What it is.
    pub kind: SectionKind,
    /// How often it comes in the chunk.
    pub times: u64,
    /// Its operators, in order.
    pub operators: Operators,
}

impl Section {
    /// The weights of one repetition.
    pub fn weights(&self, x: &Symbols<'_>) -> impl Iterator<Item = Weight> {
        self.kind.weights(x)
    }
}

/// How often each kind comes in a chunk, in the order of [`SectionKind::ALL`].
#[must_use]
pub fn section_counts(x: &Symbols<'_>, chunk: &Chunk) -> [u64; SectionKind::ALL.len()] {
    let mut counts = [0; SectionKind::ALL.len()];
    let mut add = |kind: SectionKind, times: u64| counts[kind.index()] += times;
    x.model().layer_kinds(chunk.layers.clone(), |kind, times| add(SectionKind::Layer(kind), times));
    add(SectionKind::Embedding, u64::from(chunk.embedding));
    add(SectionKind::FinalNorm, u64::from(has_final_norm(x, chunk)));
    // Each depth embeds the shifted tokens by itself; on the embedding's own stage that table already exists.
    add(SectionKind::MtpEmbedding, u64::from(chunk.mtp_layers > 0 && !chunk.embedding));
    add(SectionKind::Mtp, chunk.mtp_layers);
    add(SectionKind::OutputLayer, u64::from(chunk.output_layer));
    // Images are embedded where tokens are.
    if let Some(tower) = x.model().vision.filter(|tower| chunk.embedding && !tower.in_engine_alone) {
        add(SectionKind::VisionLayer, tower.layers);
        add(SectionKind::VisionEnds, 1);
    }
    if let Some(encoder) = x.model().encoder.filter(|_| chunk.embedding) {
        add(SectionKind::FirstEncoderLayer, encoder.layers.min(1));
        add(SectionKind::EncoderLayer, encoder.layers.saturating_sub(1));
        add(SectionKind::EncoderEnds, 1);
    }
    counts
}

/// The sections of a chunk that are or contain transformer layers, each listed individually, the last in forward
/// order first.
#[must_use]
pub fn layers_backward(x: &Symbols<'_>, chunk: &Chunk) -> Vec<SectionKind> {
    let mut kinds = Vec::new();
    for _ in 0..chunk.mtp_layers {
        kinds.push(SectionKind::Mtp);
    }
    kinds.extend(chunk.layers.clone().rev().map(|index| SectionKind::Layer(x.model().layer_kind(index))));
    kinds
}

/// How many of these are layers before the first one that trains: they hold weights and nothing else.
#[must_use]
pub fn frozen_counts(x: &Symbols<'_>, chunk: &Chunk) -> [u64; SectionKind::ALL.len()] {
    let mut counts = [0; SectionKind::ALL.len()];
    let frozen = x.recipe().tuning.frozen_layers(x.model().num_layers);
    for index in chunk.layers.start..chunk.layers.end.min(frozen) {
        counts[SectionKind::Layer(x.model().layer_kind(index)).index()] += 1;
    }
    counts
}

/// The sections of a chunk, in order, with equal layers grouped.
#[must_use]
pub fn sections(x: &Symbols<'_>, chunk: &Chunk) -> Vec<Section> {
    let mut sections = Vec::with_capacity(4);
    for (&kind, &times) in SectionKind::ALL.iter().zip(&section_counts(x, chunk)) {
        if times > 0 {
            sections.push(Section { kind, times, operators: kind.operators(x) });
        }
    }
    sections
}

/// Whether two chunks have the same sections in the same order.
#[must_use]
pub fn are_alike(x: &Symbols<'_>, one: &Chunk, other: &Chunk) -> bool {
    let ends = |of: &Chunk| (of.embedding, of.output_layer, of.mtp_layers, has_final_norm(x, of));
    let layers = |of: &Chunk| of.layers.end.saturating_sub(of.layers.start);
    if ends(one) != ends(other) || layers(one) != layers(other) {
        return false;
    }
    let are_of_a_kind = x.model().are_alike(&one.layers, &other.layers);
    // Frozen layers are the first of the model, so for layers of one kind their count determines which they are.
    let last = x.recipe().tuning.frozen_layers(x.model().num_layers);
    let frozen = |of: &Chunk| of.layers.end.min(last).saturating_sub(of.layers.start);
    are_of_a_kind && frozen(one) == frozen(other)
}

/// The sections of a stage, chunk after chunk.
#[must_use]
pub fn sections_of(x: &Symbols<'_>, stage: &Stage) -> Vec<Section> {
    let mut all = Vec::new();
    for chunk in &stage.chunks {
        all.extend(sections(x, chunk));
    }
    all
}

/// The final norm comes before the output layer; with multi-token prediction, after the last layer
/// (`megatron/core/transformer/transformer_block.py:has_final_layernorm_in_this_stage`).
fn has_final_norm(x: &Symbols<'_>, chunk: &Chunk) -> bool {
    if x.model().mtp_num_layers == 0 {
        chunk.output_layer
    } else {
        chunk.layers.start < chunk.layers.end && chunk.layers.end == x.model().num_layers
    }
}
