//! The weights of an operator, and how they are cut.

use super::Shape;
use shardscope_units::Count;

/// A weight tensor and its share on one rank.
#[derive(Clone, Debug, PartialEq)]
pub struct Weight {
    /// Short name, for example `linear_qkv.weight`.
    pub name: &'static str,
    /// Where its parameters are counted in a report.
    pub account: Account,
    /// Shape in the unsharded model (all experts of it, for expert weights: first dimension).
    pub full: Shape,
    /// Shape on one rank.
    pub local: Shape,
    /// How it is cut.
    pub shard: Shard,
    /// Over which ranks its gradient is reduced and its states are sharded.
    pub group: WeightGroup,
    /// Whether Transformer Engine runs it as a linear layer (a candidate for fp8 and dummy gradients).
    pub linear: bool,
    /// Whether it repeats a weight that another stage counts (a tied output layer behind a pipeline, the
    /// embedding of a multi-token-prediction stage): held and trained here, not part of the model's total.
    pub copy: bool,
    /// Whether it trains.
    pub role: WeightRole,
    /// Which part of the model it is, where an estimate treats it apart.
    pub part: WeightPart,
    /// When it is created among the weights of its section.
    pub created: Created,
}

/// When a weight is created among those of its section, which decides where its gradient lies in a buffer. Weights of one turn
/// come in the order in which they are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Created {
    /// Before the layer: what a depth of multi-token prediction joins its inputs by.
    BeforeLayer,
    /// With the norm in front of attention, which is the first module of a layer unless it lies in the projection behind it.
    WithInputNorm,
    /// First within attention: its output projection, and what its core learns.
    FirstInAttention,
    /// In the order of the list.
    Listed,
    /// Behind everything else.
    Last,
}

/// Weights that estimates treat apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WeightPart {
    /// Any other.
    Plain,
    /// The word embedding.
    WordEmbedding,
    /// The projection onto the vocabulary.
    OutputProjection,
    /// A norm over the heads' queries or keys: tensor ranks hold it whole and each sees its own heads.
    HeadNorm,
    /// Of a vision tower: tokens do not meet it, and it may be held in a format of its own.
    VisionTower,
}

impl Weight {
    /// The same, as this part of the model.
    #[must_use]
    pub fn as_part(mut self, part: WeightPart) -> Self {
        self.part = part;
        self
    }

    /// The same, created at this turn.
    #[must_use]
    pub fn created(mut self, created: Created) -> Self {
        self.created = created;
        self
    }

    /// Whether it is the word embedding, or repeats it as the output layer's.
    #[must_use]
    pub fn is_word_embedding(&self) -> bool {
        self.part == WeightPart::WordEmbedding || (self.part == WeightPart::OutputProjection && self.copy)
    }

    /// A weight that every rank holds whole.
    #[must_use]
    pub fn whole(name: &'static str, account: Account, shape: &[u64]) -> Self {
        Self {
            name,
            account,
            full: Shape::new(shape),
            local: Shape::new(shape),
            shard: Shard::Whole,
            group: WeightGroup::Dense,
            linear: false,
            copy: false,
            role: WeightRole::Trained,
            part: WeightPart::Plain,
            created: Created::Listed,
        }
    }

    /// A linear layer `[out, in]` cut by output over `t` ranks: column-parallel.
    #[must_use]
    pub fn column(name: &'static str, account: Account, [out, inner]: [u64; 2], t: u64) -> Self {
        Self {
            local: Shape::new(&[out / t.max(1), inner]),
            shard: Shard::Tensor(Axis::Output),
            linear: true,
            ..Self::whole(name, account, &[out, inner])
        }
    }

    /// A linear layer `[out, in]` cut by input over `t` ranks: row-parallel.
    #[must_use]
    pub fn row(name: &'static str, account: Account, [out, inner]: [u64; 2], t: u64) -> Self {
        Self {
            local: Shape::new(&[out, inner / t.max(1)]),
            shard: Shard::Tensor(Axis::Input),
            linear: true,
            ..Self::whole(name, account, &[out, inner])
        }
    }

    /// A vector of `out` elements cut over `t` ranks: the bias of a column-parallel layer.
    #[must_use]
    pub fn split_vector(name: &'static str, account: Account, out: u64, t: u64) -> Self {
        Self {
            local: Shape::new(&[out / t.max(1)]),
            shard: Shard::Tensor(Axis::Output),
            ..Self::whole(name, account, &[out])
        }
    }

    /// The same, run as a linear layer.
    #[must_use]
    pub fn as_linear(mut self) -> Self {
        self.linear = true;
        self
    }

    /// The same, as a copy of what another stage counts.
    #[must_use]
    pub fn as_copy(mut self) -> Self {
        self.copy = true;
        self
    }

    /// Whether it belongs to routed experts, of which a token meets only the selected ones.
    #[must_use]
    pub fn is_routed(&self) -> bool {
        matches!(self.shard, Shard::Expert(_))
    }

    /// Parameters on one rank.
    #[must_use]
    pub fn count(&self) -> Count {
        Count::of_shape(&self.local)
    }

    /// Parameters of the unsharded model.
    #[must_use]
    pub fn full_count(&self) -> Count {
        Count::of_shape(&self.full)
    }
}

/// Whether a weight trains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WeightRole {
    /// It came with the model, and trains.
    Trained,
    /// It came with the model, and stays as it is.
    Frozen,
    /// Added to the model and trained: an adapter.
    Adapter,
    /// A copy of a frozen weight that trains in its place (PEFT `modules_to_save`).
    TrainedCopy,
}

impl WeightRole {
    /// Whether it has a gradient.
    #[must_use]
    pub const fn trains(self) -> bool {
        !matches!(self, Self::Frozen)
    }

    /// Whether it is of the model as it was published.
    #[must_use]
    pub const fn is_of_the_model(self) -> bool {
        matches!(self, Self::Trained | Self::Frozen)
    }
}

/// Where a weight's parameters are counted in a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Account {
    /// Word and position embeddings.
    Embedding,
    /// Attention projections and sinks.
    Attention,
    /// Dense MLPs.
    Mlp,
    /// Routers.
    Router,
    /// Routed experts and their latent projections.
    Experts,
    /// Shared experts and their gate.
    SharedExperts,
    /// Norms.
    Norms,
    /// The output layer, a copy of a tied embedding included.
    OutputLayer,
    /// A vision tower and its projector.
    VisionTower,
    /// The rest: projections of multi-token prediction.
    Other,
}

impl Account {
    /// Every account, in the report's order.
    pub const ALL: [Self; 10] = [
        Self::Embedding,
        Self::Attention,
        Self::Mlp,
        Self::Router,
        Self::Experts,
        Self::SharedExperts,
        Self::Norms,
        Self::OutputLayer,
        Self::VisionTower,
        Self::Other,
    ];

    /// The name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Embedding => "embedding",
            Self::Attention => "attention",
            Self::Mlp => "mlp",
            Self::Router => "router",
            Self::Experts => "experts",
            Self::SharedExperts => "shared_experts",
            Self::Norms => "norms",
            Self::OutputLayer => "output_layer",
            Self::VisionTower => "vision_tower",
            Self::Other => "other",
        }
    }
}

/// How a weight is cut over its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shard {
    /// Whole on every rank.
    Whole,
    /// Cut along `Axis` by the tensor-parallel size.
    Tensor(Axis),
    /// Experts spread over the expert-parallel ranks, each cut by the expert-tensor size.
    Expert(Axis),
}

/// Which axis of a weight `[out, in]` is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Axis {
    /// Rows: column-parallel in Megatron's word.
    Output,
    /// Columns: row-parallel in Megatron's word.
    Input,
    /// None (whole experts only).
    Neither,
}

/// Over which ranks a weight is replicated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WeightGroup {
    /// Data and context parallel ranks.
    Dense,
    /// Expert data parallel ranks.
    Expert,
}
