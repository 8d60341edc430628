//! The weights of an operator, and how they are sharded.

use super::{Shape, Symbols};
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
    /// How it is sharded.
    pub shard: Shard,
    /// Over which ranks its gradient is reduced and its states are sharded.
    pub group: WeightGroup,
    /// Whether Transformer Engine runs it as a linear layer (a candidate for fp8 and dummy gradients).
    pub linear: bool,
    /// Whether it repeats a weight that another stage counts (a tied output layer on another pipeline stage, the
    /// embedding of a multi-token-prediction stage): stored and trained here, but not part of the model's total.
    pub copy: bool,
    /// Whether it trains.
    pub role: WeightRole,
    /// Which part of the model it is, if an estimate treats it separately.
    pub part: WeightPart,
    /// Its creation order among the weights of its section.
    pub created: Created,
}

/// When a weight is created among those of its section, which determines the position of its gradient in a buffer.
/// Weights with the same position are created in the order in which they are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Created {
    /// Before the layer: the projection that joins the inputs of a multi-token-prediction depth.
    BeforeLayer,
    /// With the norm before attention, which is the first module of a layer unless it is fused into the projection
    /// after it.
    WithInputNorm,
    /// First within attention: its output projection, and its core's learned parameters.
    FirstInAttention,
    /// In the order of the list.
    Listed,
    /// After everything else.
    Last,
}

/// Weights that estimates treat separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WeightPart {
    /// Any other.
    Plain,
    /// The word embedding.
    WordEmbedding,
    /// The projection onto the vocabulary.
    OutputProjection,
    /// A norm over the heads' queries or keys: it is replicated on tensor ranks, and each sees only its own heads.
    HeadNorm,
    /// The fused projection of queries, keys and values, or its bias.
    JointQueries {
        /// Rows of the keys on one rank.
        keys: u64,
        /// Rows of the values.
        values: u64,
    },
    /// The first projection of an MLP, whose gate is the first half of its rows, or its bias.
    GateAndUp,
    /// Part of a vision tower: text tokens do not pass it, and it may be stored in its own format.
    VisionTower,
}

impl Weight {
    /// The same, as this part of the model.
    #[must_use]
    pub fn as_part(mut self, part: WeightPart) -> Self {
        self.part = part;
        self
    }

    /// The same, created at this position.
    #[must_use]
    pub fn created(mut self, created: Created) -> Self {
        self.created = created;
        self
    }

    /// Whether it is the word embedding, or its copy in the output layer.
    #[must_use]
    pub fn is_word_embedding(&self) -> bool {
        self.part == WeightPart::WordEmbedding || (self.part == WeightPart::OutputProjection && self.copy)
    }

    /// A weight that is replicated on every rank.
    #[must_use]
    pub fn replicated(name: &'static str, account: Account, shape: &[u64]) -> Self {
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

    /// A linear layer `[out, in]` sharded by output over `t` ranks: column-parallel.
    #[must_use]
    pub fn column(name: &'static str, account: Account, [out, inner]: [u64; 2], t: u64) -> Self {
        Self {
            local: Shape::new(&[out / t.max(1), inner]),
            shard: Shard::Tensor(Axis::Output),
            linear: true,
            ..Self::replicated(name, account, &[out, inner])
        }
    }

    /// A linear layer `[out, in]` sharded by input over `t` ranks: row-parallel.
    #[must_use]
    pub fn row(name: &'static str, account: Account, [out, inner]: [u64; 2], t: u64) -> Self {
        Self {
            local: Shape::new(&[out, inner / t.max(1)]),
            shard: Shard::Tensor(Axis::Input),
            linear: true,
            ..Self::replicated(name, account, &[out, inner])
        }
    }

    /// A vector of `out` elements sharded over `t` ranks: the bias of a column-parallel layer.
    #[must_use]
    pub fn split_vector(name: &'static str, account: Account, out: u64, t: u64) -> Self {
        Self {
            local: Shape::new(&[out / t.max(1)]),
            shard: Shard::Tensor(Axis::Output),
            ..Self::replicated(name, account, &[out])
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

    /// Whether it belongs to routed experts, of which a token only passes the selected ones.
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
    /// Part of the original model, and trained.
    Trained,
    /// Part of the original model, and frozen.
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

    /// Whether it belongs to the model as published.
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
    /// The output layer, including a copy of a tied embedding.
    OutputLayer,
    /// A vision tower and its projector.
    VisionTower,
    /// An encoder, without the embedding that it shares with the decoder.
    Encoder,
    /// The rest: projections of multi-token prediction.
    Other,
}

impl Account {
    /// Every account, in the report's order.
    pub const ALL: [Self; 11] = [
        Self::Embedding,
        Self::Attention,
        Self::Mlp,
        Self::Router,
        Self::Experts,
        Self::SharedExperts,
        Self::Norms,
        Self::OutputLayer,
        Self::VisionTower,
        Self::Encoder,
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
            Self::Encoder => "encoder",
            Self::Other => "other",
        }
    }
}

/// How a weight is sharded over its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shard {
    /// Replicated on every rank.
    Whole,
    /// Sharded along `Axis` by the tensor-parallel size.
    Tensor(Axis),
    /// Experts distributed over the expert-parallel ranks, each sharded by the expert-tensor size.
    Expert(Axis),
}

/// Which axis of a weight `[out, in]` is sharded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Axis {
    /// Rows: column-parallel in Megatron's terms.
    Output,
    /// Columns: row-parallel in Megatron's terms.
    Input,
    /// None (unsharded experts only).
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

/// The tensors of `weight` as the software's modules hold it: what Megatron fuses is several projections in most
/// others.
#[must_use]
pub fn of_modules(x: &Symbols<'_>, weight: &Weight) -> Vec<Shape> {
    let arranged = &x.model().arrangement;
    let rows = weight.local.first().copied().unwrap_or_default();
    let parts = match weight.part {
        WeightPart::JointQueries { keys, values } if !arranged.fused_qkv => {
            [rows.saturating_sub(keys + values), keys, values]
        }
        WeightPart::GateAndUp if x.gate > 1 && !arranged.fused_gate_up => [rows / 2, rows - rows / 2, 0],
        _ => return vec![weight.local],
    };
    let mut shapes = Vec::with_capacity(parts.len());
    for rows in parts.into_iter().filter(|rows| *rows > 0) {
        let mut sizes = weight.local.to_vec();
        sizes[0] = rows;
        shapes.push(Shape::new(&sizes));
    }
    shapes
}
