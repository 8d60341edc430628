//! What context parallelism sends around the attention core
//! (Transformer Engine, `transformer_engine/pytorch/attention`).

use super::exchange::within;
use super::message::Call;
use super::{Collective, Dimension, Message, Symbols};
use shardscope_explain::Formula;
use shardscope_plan::{ContextKind, RecomputeModule};

const SOURCE: &str = "TransformerEngine, attention/dot_product_attention/context_parallel.py";
const CORE: &[RecomputeModule] = &[RecomputeModule::CoreAttention];

/// Columns per token on one rank.
#[derive(Clone, Copy)]
pub(super) struct HeadColumns {
    pub(super) query: u64,
    pub(super) key: u64,
    pub(super) value: u64,
    /// Columns of the attention output.
    pub(super) output: u64,
}

/// A tensor that is sent in forward, and what is sent for it in backward.
pub(super) struct Mirrored {
    forward: Call,
    backward: Call,
}

/// Bytes of what is sent, per tensor, as expressions.
pub(super) struct Sizes {
    pub(super) keys_and_values: &'static str,
    pub(super) query: &'static str,
    pub(super) key: &'static str,
    pub(super) value: &'static str,
    pub(super) output: &'static str,
    pub(super) whole_key: &'static str,
    pub(super) whole_value: &'static str,
}

/// Every possible call for one kind of attention.
pub(super) struct ContextCalls {
    ring: [Call; 3],
    outer: [Call; 3],
    gather: [[Call; 3]; 2],
    swap: [Mirrored; 4],
    inner: [Mirrored; 4],
}

impl ContextCalls {
    pub(super) const fn new(sizes: &Sizes) -> Self {
        Self {
            ring: ring_calls(Dimension::Context, sizes.keys_and_values),
            outer: ring_calls(Dimension::ContextOuter, sizes.keys_and_values),
            gather: [gather_calls("keys", sizes.whole_key), gather_calls("values", sizes.whole_value)],
            swap: swap_calls(Dimension::Context, sizes),
            inner: swap_calls(Dimension::ContextInner, sizes),
        }
    }
}

const fn ring_calls(dimension: Dimension, size: &'static str) -> [Call; 3] {
    let send = Collective::SendRecv;
    [
        Call::forward(
            dimension,
            send,
            "keys and values",
            Formula::new(
                size,
                "Keys and values circulate around the ring until every rank has attended to all of them.",
                SOURCE,
            ),
        ),
        Call::backward(
            dimension,
            send,
            "keys and values",
            Formula::new(
                size,
                "Keys and values circulate around the ring again in the backward pass.",
                SOURCE,
            ),
        ),
        Call::backward(
            dimension,
            send,
            "key and value gradients",
            Formula::new(size, "The gradients of keys and values circulate with them.", SOURCE),
        ),
    ]
}

const fn gather_calls(tensor: &'static str, size: &'static str) -> [Call; 3] {
    let dimension = Dimension::Context;
    [
        Call::forward(
            dimension,
            Collective::AllGather,
            tensor,
            Formula::new(size, "Every rank gathers those of the whole sequence.", SOURCE),
        ),
        Call::backward(
            dimension,
            Collective::AllGather,
            tensor,
            Formula::new(size, "Not saved: gathered again in the backward pass.", SOURCE),
        ),
        Call::backward(
            dimension,
            Collective::ReduceScatter,
            tensor,
            Formula::new(size, "Their gradients are reduced and scattered along the sequence.", SOURCE),
        ),
    ]
}

const fn swap_call(dimension: Dimension, tensor: &'static str, size: &'static str) -> Mirrored {
    let swap = Collective::AllToAll;
    let forward =
        Formula::new(size, "All-to-all from sequence to heads before attention, and back after it.", SOURCE);
    let backward = Formula::new(size, "The same exchange for the gradient.", SOURCE);
    Mirrored {
        forward: Call::forward(dimension, swap, tensor, forward),
        backward: Call::backward(dimension, swap, tensor, backward),
    }
}

const fn swap_calls(dimension: Dimension, sizes: &Sizes) -> [Mirrored; 4] {
    [
        swap_call(dimension, "queries", sizes.query),
        swap_call(dimension, "keys", sizes.key),
        swap_call(dimension, "values", sizes.value),
        swap_call(dimension, "output", sizes.output),
    ]
}

/// The messages of one attention core.
pub(super) fn context(x: &Symbols<'_>, calls: &'static ContextCalls, columns: HeadColumns) -> Vec<Message> {
    let layout = x.plan.layout();
    let c = layout.context;
    let levels = &layout.hierarchical_context;
    let messages = if c <= 1 {
        Vec::new()
    } else {
        match (layout.context_kind, levels.first()) {
            (ContextKind::PointToPoint, _) => ring(x, &calls.ring, columns, c - 1),
            (ContextKind::AllGather, _) => gather(x, calls, columns),
            (ContextKind::AllToAllAndPointToPoint, Some(&inner)) => {
                let mut messages = swap(x, &calls.inner, columns);
                let steps = (c / inner.max(1)).saturating_sub(1);
                messages.extend(ring(x, &calls.outer, columns, steps));
                messages
            }
            (ContextKind::AllToAll | ContextKind::AllToAllAndPointToPoint, _) => {
                swap(x, &calls.swap, columns)
            }
        }
    };
    // The exchange is part of the attention core: recomputing the core repeats it.
    within(messages, CORE)
}

/// A ring overlaps with the attention over what has already arrived.
fn ring(x: &Symbols<'_>, calls: &'static [Call; 3], columns: HeadColumns, steps: u64) -> Vec<Message> {
    // A single rank at this level attends only to what it has.
    if steps == 0 {
        return Vec::new();
    }
    let shape = [x.s, x.b, columns.key + columns.value];
    let [one, two, three] = calls;
    let mut messages = Message::each(x, &[one, two, three], "core_attention", &shape, steps);
    for message in &mut messages {
        message.overlapped = true;
    }
    messages
}

fn gather(x: &Symbols<'_>, calls: &'static ContextCalls, columns: HeadColumns) -> Vec<Message> {
    // An all-gather's message is the gathered tensor: keys or values of the whole sequence.
    let whole = x.s * x.plan.layout().context;
    let mut messages = Vec::new();
    for ([one, two, three], width) in calls.gather.iter().zip([columns.key, columns.value]) {
        let shape = [whole, x.b, width];
        messages.extend(Message::each(x, &[one, two, three], "core_attention", &shape, 1));
    }
    messages
}

fn swap(x: &Symbols<'_>, calls: &'static [Mirrored; 4], columns: HeadColumns) -> Vec<Message> {
    let widths = [columns.query, columns.key, columns.value, columns.output];
    let mut messages = Vec::new();
    for (calls, width) in calls.iter().zip(widths) {
        let both = [&calls.forward, &calls.backward];
        messages.extend(Message::each(x, &both, "core_attention", &[x.s, x.b, width], 1));
    }
    messages
}
