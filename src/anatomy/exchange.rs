//! Messages that several operators share: around column- and row-parallel layers, and of keys and values
//! between context-parallel ranks.

use super::message::Call;
use super::{Collective, Dimension, Message, Pass, Symbols};
use crate::explain::Formula;
use crate::plan::{ContextKind, RecomputeModule};

const LAYERS: &str = "Megatron-LM megatron/core/tensor_parallel/layers.py, mappings.py";
const CONTEXT: &str = "TransformerEngine transformer_engine/pytorch/attention/context_parallel.py";

static GATHER_INPUT: Call = Call {
    dimension: Dimension::Tensor,
    collective: Collective::AllGather,
    pass: Pass::Forward,
    tensor: "input",
    formula: Formula {
        expression: "s·b·h·B",
        meaning: "Sequence parallel: the whole sequence is gathered in front of a column-parallel layer.",
        source: LAYERS,
    },
};

static GATHER_INPUT_AGAIN: Call = Call {
    dimension: Dimension::Tensor,
    collective: Collective::AllGather,
    pass: Pass::Backward,
    tensor: "input again",
    formula: Formula {
        expression: "s·b·h·B",
        meaning: "Sequence parallel: only a part of the input was kept, the weight gradient needs it whole.",
        source: LAYERS,
    },
};

static SCATTER_INPUT_GRADIENT: Call = Call {
    dimension: Dimension::Tensor,
    collective: Collective::ReduceScatter,
    pass: Pass::Backward,
    tensor: "input gradient",
    formula: Formula {
        expression: "s·b·h·B",
        meaning: "Sequence parallel: each rank's part of the input gradient is added up and cut by sequence.",
        source: LAYERS,
    },
};

static REDUCE_INPUT_GRADIENT: Call = Call {
    dimension: Dimension::Tensor,
    collective: Collective::AllReduce,
    pass: Pass::Backward,
    tensor: "input gradient",
    formula: Formula {
        expression: "s·b·h·B",
        meaning: "The columns of a column-parallel layer lie on all tensor ranks, so its input gradient is added up.",
        source: LAYERS,
    },
};

static REDUCE_OUTPUT: Call = Call {
    dimension: Dimension::Tensor,
    collective: Collective::AllReduce,
    pass: Pass::Forward,
    tensor: "output",
    formula: Formula {
        expression: "s·b·h·B",
        meaning: "Every tensor rank of a row-parallel layer has a summand of its output.",
        source: LAYERS,
    },
};

static SCATTER_OUTPUT: Call = Call {
    dimension: Dimension::Tensor,
    collective: Collective::ReduceScatter,
    pass: Pass::Forward,
    tensor: "output",
    formula: Formula {
        expression: "s·b·h·B",
        meaning: "Sequence parallel: the summands of a row-parallel layer are added up and cut by sequence.",
        source: LAYERS,
    },
};

static GATHER_OUTPUT_GRADIENT: Call = Call {
    dimension: Dimension::Tensor,
    collective: Collective::AllGather,
    pass: Pass::Backward,
    tensor: "output gradient",
    formula: Formula {
        expression: "s·b·h·B",
        meaning: "Sequence parallel: a row-parallel layer's output gradient is gathered along the sequence.",
        source: LAYERS,
    },
};

fn parallel(x: &Symbols<'_>) -> bool {
    x.plan.layout().sequence_parallel
}

/// Around a layer cut by output whose whole input has `width` columns.
pub(super) fn column(x: &Symbols<'_>, name: &'static str, width: u64) -> Vec<Message> {
    if x.t <= 1 {
        return Vec::new();
    }
    let shape = [x.s, x.b, width];
    let overlap = x.recipe().overlap;
    let behind = overlap.tensor || overlap.tensor_backward;
    if !parallel(x) {
        return vec![Message::new(x, &REDUCE_INPUT_GRADIENT, name, &shape).hidden(overlap.tensor_backward)];
    }
    vec![
        Message::new(x, &GATHER_INPUT, name, &shape).hidden(overlap.tensor),
        Message::new(x, &GATHER_INPUT_AGAIN, name, &shape).hidden(behind),
        Message::new(x, &SCATTER_INPUT_GRADIENT, name, &shape).hidden(behind),
    ]
}

/// Around a layer cut by input whose whole output is the residual stream.
pub(super) fn row(x: &Symbols<'_>, name: &'static str) -> Vec<Message> {
    if x.t <= 1 {
        return Vec::new();
    }
    let shape = [x.s, x.b, x.h];
    if !parallel(x) {
        return vec![Message::new(x, &REDUCE_OUTPUT, name, &shape)];
    }
    let overlap = x.recipe().overlap.tensor;
    vec![
        Message::new(x, &SCATTER_OUTPUT, name, &shape).hidden(overlap),
        Message::new(x, &GATHER_OUTPUT_GRADIENT, name, &shape).hidden(overlap),
    ]
}

/// `messages`, all of them repeated when one of `modules` is recomputed.
pub(super) fn within(
    messages: Vec<Message>,
    modules: &'static [RecomputeModule],
) -> impl Iterator<Item = Message> {
    messages.into_iter().map(move |message| message.within(modules))
}

/// Columns of one token's queries, keys and values on one rank.
#[derive(Clone, Copy)]
pub(super) struct HeadColumns {
    pub(super) query: u64,
    pub(super) key: u64,
    pub(super) value: u64,
    /// Of what attention gives.
    pub(super) output: u64,
}

macro_rules! context_call {
    ($name:ident, $dimension:ident, $collective:ident, $pass:ident, $tensor:literal, $size:literal, $why:literal) => {
        static $name: Call = Call {
            dimension: Dimension::$dimension,
            collective: Collective::$collective,
            pass: Pass::$pass,
            tensor: $tensor,
            formula: Formula { expression: $size, meaning: $why, source: CONTEXT },
        };
    };
}

context_call!(
    RING,
    Context,
    SendRecv,
    Forward,
    "keys and values",
    "(c-1) times s/c·b·2K·B",
    "Ring: keys and values go round until every rank has met all of them."
);
context_call!(
    RING_BACK,
    Context,
    SendRecv,
    Backward,
    "keys and values",
    "(c-1) times s/c·b·2K·B",
    "Ring: keys and values go round once more."
);
context_call!(
    RING_GRADIENT,
    Context,
    SendRecv,
    Backward,
    "key and value gradients",
    "(c-1) times s/c·b·2K·B",
    "Ring: the gradients of keys and values go round with them."
);
context_call!(
    OUTER,
    ContextOuter,
    SendRecv,
    Forward,
    "keys and values",
    "(c/c0-1) times s/c·b·2K·B",
    "Ring across the outer level."
);
context_call!(
    OUTER_BACK,
    ContextOuter,
    SendRecv,
    Backward,
    "keys and values",
    "(c/c0-1) times s/c·b·2K·B",
    "Ring across the outer level once more."
);
context_call!(
    OUTER_GRADIENT,
    ContextOuter,
    SendRecv,
    Backward,
    "key and value gradients",
    "(c/c0-1) times s/c·b·2K·B",
    "The gradients of keys and values go round the outer level."
);
context_call!(
    GATHER,
    Context,
    AllGather,
    Forward,
    "keys, values",
    "s·b·K·B",
    "Every rank gathers the keys, and the values, of the whole sequence."
);
context_call!(
    GATHER_BACK,
    Context,
    AllGather,
    Backward,
    "keys, values",
    "s·b·K·B",
    "Not kept: gathered again for the backward pass."
);
context_call!(
    SCATTER_BACK,
    Context,
    ReduceScatter,
    Backward,
    "key, value gradients",
    "s·b·K·B",
    "The gradients of keys and values are added up and cut by sequence."
);
context_call!(
    HEADS,
    Context,
    AllToAll,
    Forward,
    "queries, keys, values, output",
    "s/c·b·A·B",
    "Sequence is exchanged for heads before attention and back behind it."
);
context_call!(
    HEADS_BACK,
    Context,
    AllToAll,
    Backward,
    "gradients of the same",
    "s/c·b·A·B",
    "The same exchanges for the gradients."
);
context_call!(
    INNER,
    ContextInner,
    AllToAll,
    Forward,
    "queries, keys, values, output",
    "s/c·b·A·B",
    "Sequence is exchanged for heads inside the inner level."
);
context_call!(
    INNER_BACK,
    ContextInner,
    AllToAll,
    Backward,
    "gradients of the same",
    "s/c·b·A·B",
    "The same exchanges for the gradients."
);

/// What context parallelism sends around the attention core.
pub(super) fn context(x: &Symbols<'_>, columns: HeadColumns) -> Vec<Message> {
    let layout = x.plan.layout();
    let (c, inner) = (layout.context, layout.hierarchical_context.first().copied().unwrap_or(layout.context));
    if c <= 1 {
        return Vec::new();
    }
    let ring = |calls: [&'static Call; 3], steps: u64| {
        let shape = [x.s, x.b, columns.key + columns.value];
        let one = |call| Message::new(x, call, "core_attention", &shape).times(steps).hidden(true);
        if steps > 0 { calls.map(one).to_vec() } else { Vec::new() }
    };
    let swap = |calls: [&'static Call; 2]| -> Vec<Message> {
        let all = [columns.query, columns.key, columns.value, columns.output];
        let one = |call| all.map(|width| Message::new(x, call, "core_attention", &[x.s, x.b, width]));
        calls.into_iter().flat_map(one).collect()
    };
    let messages = match layout.context_kind {
        ContextKind::PointToPoint => ring([&RING, &RING_BACK, &RING_GRADIENT], c - 1),
        ContextKind::AllGather => gather(x, columns, c),
        ContextKind::AllToAll => swap([&HEADS, &HEADS_BACK]),
        ContextKind::AllToAllAndPointToPoint if layout.hierarchical_context.is_empty() => {
            swap([&HEADS, &HEADS_BACK])
        }
        ContextKind::AllToAllAndPointToPoint => {
            let mut messages = swap([&INNER, &INNER_BACK]);
            let steps = (c / inner.max(1)).saturating_sub(1);
            messages.extend(ring([&OUTER, &OUTER_BACK, &OUTER_GRADIENT], steps));
            messages
        }
    };
    within(messages, &[RecomputeModule::CoreAttention]).collect()
}

fn gather(x: &Symbols<'_>, columns: HeadColumns, c: u64) -> Vec<Message> {
    let whole = [columns.key, columns.value].map(|width| [x.s * c, x.b, width]);
    let both = |call| whole.map(|shape| Message::new(x, call, "core_attention", &shape));
    [&GATHER, &GATHER_BACK, &SCATTER_BACK].into_iter().flat_map(both).collect()
}
