//! Messages around column- and row-parallel layers (`megatron/core/tensor_parallel`).

use super::message::Call;
use super::{Collective, Dimension, Message, Pass, Symbols};
use shardscope_explain::Formula;
use shardscope_plan::RecomputeModule;

const LAYERS: &str = "megatron/core/tensor_parallel/layers.py";
const TENSOR: Dimension = Dimension::Tensor;

/// What is sent around a column-parallel layer.
pub(super) struct ColumnCalls {
    gather: Call,
    again: Call,
    scatter: Call,
    reduce: Call,
}

impl ColumnCalls {
    /// For a layer whose full input has `size` bytes.
    pub(super) const fn new(size: &'static str) -> Self {
        Self {
            gather: Call::forward(
                TENSOR,
                Collective::AllGather,
                "input",
                Formula::new(
                    size,
                    "The input is all-gathered along the sequence before a column-parallel layer.",
                    LAYERS,
                ),
            ),
            again: Call::backward(
                TENSOR,
                Collective::AllGather,
                "input again",
                Formula::new(
                    size,
                    "The weight gradient needs the whole input; only this rank's shard was saved.",
                    LAYERS,
                ),
            ),
            scatter: Call::backward(
                TENSOR,
                Collective::ReduceScatter,
                "input gradient",
                Formula::new(
                    size,
                    "Every rank holds a partial sum of the input gradient; it is reduced and scattered along the sequence.",
                    LAYERS,
                ),
            ),
            reduce: Call::backward(
                TENSOR,
                Collective::AllReduce,
                "input gradient",
                Formula::new(
                    size,
                    "Every rank holds a partial sum of a column-parallel layer's input gradient.",
                    LAYERS,
                ),
            ),
        }
    }
}

/// A layer that reads the residual stream.
pub(super) static FROM_RESIDUAL: ColumnCalls = ColumnCalls::new("s·b·h·B");

static REDUCE_OUTPUT: Call = Call::forward(
    TENSOR,
    Collective::AllReduce,
    "output",
    Formula::new("s·b·h·B", "Every rank holds a partial sum of a row-parallel layer's output.", LAYERS),
);
static SCATTER_OUTPUT: Call = Call::forward(
    TENSOR,
    Collective::ReduceScatter,
    "output",
    Formula::new(
        "s·b·h·B",
        "Every rank holds a partial sum of the output; it is reduced and scattered along the sequence.",
        LAYERS,
    ),
);
static GATHER_OUTPUT_GRADIENT: Call = Call::backward(
    TENSOR,
    Collective::AllGather,
    "output gradient",
    Formula::new(
        "s·b·h·B",
        "A row-parallel layer's output gradient is all-gathered along the sequence.",
        LAYERS,
    ),
);

/// Around the column-parallel layer `name`, whose full input has `width` columns.
pub(super) fn column(
    x: &Symbols<'_>,
    calls: &'static ColumnCalls,
    name: &'static str,
    width: u64,
) -> Vec<Message> {
    column_of(x, calls, name, width, x.trains)
}

/// The same, with `trains` stating whether the layer's own weight trains: a frozen layer's backward does not need the
/// input.
pub(super) fn column_of(
    x: &Symbols<'_>,
    calls: &'static ColumnCalls,
    name: &'static str,
    width: u64,
    trains: bool,
) -> Vec<Message> {
    // One tensor rank: Megatron's mappings return their input unchanged (`mappings.py:_reduce`, "only 1 GPU").
    if x.t <= 1 {
        return Vec::new();
    }
    let overlap = x.recipe().overlap;
    let trained = [&calls.gather, &calls.again, &calls.scatter];
    let frozen = [&calls.gather, &calls.scatter];
    // DTensor's layers save the full input.
    let saved = x.recipe().transformers.dtensor_plan || x.recipe().transformers.gathered_inputs;
    let again = trains && !saved;
    let cut = if again { &trained[..] } else { &frozen[..] };
    // Without sequence parallelism every rank already has the full input: forward is the identity, backward an
    // all-reduce (`mappings.py:_CopyToModelParallelRegion`).
    let calls = if x.plan.layout().sequence_parallel { cut } else { &[&calls.reduce] };
    let mut messages = Message::each(x, calls, name, &[x.s, x.b, width], 1);
    for message in &mut messages {
        let own = if message.pass == Pass::Forward { overlap.tensor } else { overlap.tensor_backward };
        // Overlap in both directions hides everything that a sharded sequence needs. DTensor waits for each message
        // when it is requested (`torch/distributed/tensor/_api.py:_FromTorchTensor.backward`).
        message.overlapped =
            (own || (calls.len() > 1 && overlap.tensor)) && !x.recipe().transformers.dtensor_plan;
    }
    messages
}

/// `messages` around this many projections of one input. DTensor's column-parallel layers redistribute a replicated
/// input one by one, and each reduces its own part of that input's gradient; a sharded input is gathered once for all
/// of them (`tests/record/dtensor_layers.py`). ScaleTorch's do the same.
pub(super) fn one_by_one(x: &Symbols<'_>, mut messages: Vec<Message>, projections: u64) -> Vec<Message> {
    let alone =
        x.recipe().transformers.dtensor_plan || x.recipe().software.semantics().reduces_each_projection;
    if alone && !x.sequence_parallel {
        for message in &mut messages {
            message.calls *= projections;
        }
    }
    messages
}

/// Around the row-parallel layer `name`, whose full output is the residual stream.
pub(super) fn row(x: &Symbols<'_>, name: &'static str) -> Vec<Message> {
    if x.t <= 1 {
        return Vec::new();
    }
    // The reduced output's gradient is complete on every rank, so backward sends nothing
    // (`mappings.py:_ReduceFromModelParallelRegion.backward` is the identity).
    if !x.plan.layout().sequence_parallel {
        return Message::each(x, &[&REDUCE_OUTPUT], name, &[x.s, x.b, x.h], 1);
    }
    let calls = [&SCATTER_OUTPUT, &GATHER_OUTPUT_GRADIENT];
    let mut messages = Message::each(x, &calls, name, &[x.s, x.b, x.h], 1);
    for message in &mut messages {
        message.overlapped = x.recipe().overlap.tensor;
    }
    messages
}

/// `messages`, repeated when one of `modules` is recomputed.
pub(super) fn within(mut messages: Vec<Message>, modules: &'static [RecomputeModule]) -> Vec<Message> {
    for message in &mut messages {
        message.modules = modules;
    }
    messages
}
