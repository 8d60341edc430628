//! What a rank sends: a collective over a group of ranks, or a message to a neighbour.

use super::{Shape, Symbols};
use shardscope_explain::Formula;
use shardscope_plan::{NumberFormat, RecomputeModule};
use shardscope_units::{Bytes, Count};

/// Forward or backward pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pass {
    /// Forward.
    Forward,
    /// Backward.
    Backward,
}

/// The ranks that take part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Dimension {
    /// Tensor parallel group.
    Tensor,
    /// Pipeline neighbours.
    Pipeline,
    /// Data and context parallel group, dense weights.
    Data,
    /// Context parallel group.
    Context,
    /// Inner level of hierarchical context parallelism.
    ContextInner,
    /// Outer level of hierarchical context parallelism.
    ContextOuter,
    /// Expert parallel group.
    Expert,
    /// Expert tensor parallel group.
    ExpertTensor,
    /// Expert and expert tensor parallel ranks together.
    TensorExpert,
    /// Expert data parallel group.
    ExpertData,
    /// First and last stage, for tied embeddings.
    Embedding,
}

/// A collective operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Collective {
    /// Reduces and gives every rank the result.
    AllReduce,
    /// Gathers every rank's part.
    AllGather,
    /// Reduces and leaves each rank one part.
    ReduceScatter,
    /// Exchanges parts.
    AllToAll,
    /// One neighbour to the next.
    SendRecv,
    /// One to all.
    Broadcast,
}

impl Collective {
    /// The name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::AllReduce => "all_reduce",
            Self::AllGather => "all_gather",
            Self::ReduceScatter => "reduce_scatter",
            Self::AllToAll => "all_to_all",
            Self::SendRecv => "send_recv",
            Self::Broadcast => "broadcast",
        }
    }
}

/// A kind of call: which ranks, which collective, in which pass, for which tensor, and why.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Call {
    dimension: Dimension,
    collective: Collective,
    pass: Pass,
    tensor: &'static str,
    formula: Formula,
}

impl Call {
    /// A forward call over `dimension`.
    pub(super) const fn forward(
        dimension: Dimension,
        collective: Collective,
        tensor: &'static str,
        formula: Formula,
    ) -> Self {
        Self { dimension, collective, pass: Pass::Forward, tensor, formula }
    }

    /// A backward call over `dimension`.
    pub(super) const fn backward(
        dimension: Dimension,
        collective: Collective,
        tensor: &'static str,
        formula: Formula,
    ) -> Self {
        Self { dimension, collective, pass: Pass::Backward, tensor, formula }
    }
}

/// A message of one rank for one micro-batch in one operator.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// The layer it belongs to, for example `linear_fc2`.
    pub name: &'static str,
    /// What is sent, for example `output`.
    pub tensor: &'static str,
    /// Group that takes part.
    pub dimension: Dimension,
    /// What it does.
    pub collective: Collective,
    /// Forward or backward.
    pub pass: Pass,
    /// Shape of the full message: of the gathered or to-be-scattered tensor; of what one rank contributes to an
    /// all-to-all; of what one send carries.
    pub shape: Shape,
    /// Bytes of one element.
    pub width: u64,
    /// Name of the number format, for example `bf16`.
    pub dtype: &'static str,
    /// How often per micro-batch.
    pub calls: u64,
    /// Whether compute can hide it under this plan.
    pub overlapped: bool,
    /// Modules whose selective recomputation repeats it, if it is in the forward pass.
    pub modules: &'static [RecomputeModule],
    /// Whether recomputing its whole layer repeats it, if it is in the forward pass; false for the embedding and the
    /// output layer, which are outside of layers.
    pub in_layer: bool,
    /// Its size and why it is sent.
    pub formula: &'static Formula,
}

impl Message {
    /// One call for a tensor of `shape` in the number format of the activations.
    pub(super) fn new(x: &Symbols<'_>, call: &'static Call, name: &'static str, shape: &[u64]) -> Self {
        Self {
            name,
            tensor: call.tensor,
            dimension: call.dimension,
            collective: call.collective,
            pass: call.pass,
            shape: Shape::new(shape),
            width: x.width,
            dtype: x.recipe().module_dtype().name(),
            calls: 1,
            overlapped: false,
            modules: &[],
            in_layer: true,
            formula: &call.formula,
        }
    }

    /// Several calls for such tensors, `times` each.
    pub(super) fn each(
        x: &Symbols<'_>,
        calls: &[&'static Call],
        name: &'static str,
        shape: &[u64],
        times: u64,
    ) -> Vec<Self> {
        let mut out = Vec::with_capacity(calls.len());
        for call in calls {
            out.push(Self::new(x, call, name, shape).times(times));
        }
        out
    }

    /// The same in another number format.
    pub(super) fn in_format(mut self, number: NumberFormat) -> Self {
        self.set_format(number);
        self
    }

    /// Changes its number format.
    pub(super) fn set_format(&mut self, number: NumberFormat) {
        self.width = number.width();
        self.dtype = number.name();
    }

    /// The same in 64-bit integers.
    pub(super) fn in_integers(self) -> Self {
        Self { width: 8, dtype: "int64", ..self }
    }

    /// Changes its format to one-byte booleans.
    pub(super) fn set_booleans(&mut self) {
        self.width = 1;
        self.dtype = "bool";
    }

    /// The same, `calls` times.
    pub(super) fn times(self, calls: u64) -> Self {
        Self { calls, ..self }
    }

    /// The same, outside of every layer.
    pub(super) fn outside(mut messages: Vec<Self>) -> Vec<Self> {
        for message in &mut messages {
            message.in_layer = false;
        }
        messages
    }

    /// Bytes of one message.
    #[must_use]
    pub fn bytes(&self) -> Bytes {
        Count::of_shape(&self.shape).bytes(self.width)
    }
}
