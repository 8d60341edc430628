//! Tensors that a recomputed layer keeps by the names its code gives them (`jax.checkpoint_name`), as a policy of
//! `jax.checkpoint` chooses.

/// A named tensor of a decoder layer, in the order in which the forward pass makes them
/// (MaxText: `layers/attentions.py`, `layers/linears.py`). The MLP's output has a name too (`mlpwo`), but no gradient
/// needs it, so that no policy keeps it (`tests/data/maxtext/residuals.jsonl`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamedTensor {
    /// Queries, rotated.
    Query,
    /// Keys, rotated.
    Key,
    /// Values.
    Value,
    /// The output of attention before its output projection, with each row's log-sum-exp.
    Context,
    /// The output of attention's output projection.
    Output,
    /// The input of a gated MLP's activation.
    Gate,
    /// What a gated MLP's activation is multiplied by.
    Up,
}

impl NamedTensor {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::Query, Self::Key, Self::Value, Self::Context, Self::Output, Self::Gate, Self::Up];

    /// Its name in the layers' code.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Query => "query_proj",
            Self::Key => "key_proj",
            Self::Value => "value_proj",
            Self::Context => "context",
            Self::Output => "out_proj",
            Self::Gate => "mlpwi_0",
            Self::Up => "mlpwi_1",
        }
    }

    /// The tensor with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tensor| tensor.name() == name)
    }
}

/// A set of them, a bit for each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NamedTensors(u8);

impl NamedTensors {
    /// Whether `tensor` is in it.
    #[must_use]
    pub const fn has(self, tensor: NamedTensor) -> bool {
        self.0 & 1 << tensor as u8 != 0
    }

    /// The tensors in it, in the order of [`NamedTensor::ALL`].
    pub fn each(self) -> impl Iterator<Item = NamedTensor> {
        NamedTensor::ALL.into_iter().filter(move |tensor| self.has(*tensor))
    }

    /// Whether it is empty.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl FromIterator<NamedTensor> for NamedTensors {
    fn from_iter<I: IntoIterator<Item = NamedTensor>>(tensors: I) -> Self {
        Self(tensors.into_iter().fold(0, |bits, tensor| bits | 1 << tensor as u8))
    }
}
