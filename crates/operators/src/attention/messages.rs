//! Messages: around the two projections, and for keys and values between context-parallel ranks.

use crate::context::{ContextCalls, HeadColumns, Sizes, context};
use crate::exchange::{FROM_RESIDUAL, column, one_by_one, row};
use crate::message::Call;
use crate::{Collective, Dimension, Message, Operator, Pass, Symbols, adapters};
use shardscope_explain::Formula;

const WHOLE_KEYS: &str =
    "bigcode-project/Megatron-LM, megatron/model/transformer.py:ParallelAttention.forward";
const TENSOR: Dimension = Dimension::Tensor;

static REDUCE_KEYS: Call = Call::backward(
    TENSOR,
    Collective::AllReduce,
    "gradient of keys and values",
    Formula::new("2·s·b·K·B", "Every rank holds a partial sum of it, from its own query heads.", WHOLE_KEYS),
);
static GATHER_KEYS: Call = Call::forward(
    TENSOR,
    Collective::AllGather,
    "keys and values",
    Formula::new("2·s·b·K·B", "Each rank computes them for its shard of the sequence.", WHOLE_KEYS),
);
static SCATTER_KEYS: Call = Call::backward(
    TENSOR,
    Collective::ReduceScatter,
    "gradient of keys and values",
    Formula::new(
        "2·s·b·K·B",
        "Every rank holds a partial sum of it; it is reduced and scattered along the sequence.",
        WHOLE_KEYS,
    ),
);

static CONTEXT: ContextCalls = ContextCalls::new(&Sizes {
    keys_and_values: "2·s·b·K·B",
    query: "s·b·A·B",
    key: "s·b·K·B",
    value: "s·b·K·B",
    output: "s·b·A·B",
    whole_key: "c·s·b·K·B",
    whole_value: "c·s·b·K·B",
});

pub(crate) fn messages(x: &Symbols<'_>) -> Vec<Message> {
    let (queries, keys) = (x.a * x.d, x.k * x.d);
    let columns = HeadColumns { query: queries, key: keys, value: keys, output: queries };
    // Queries, keys and values.
    let mut messages = one_by_one(x, column(x, &FROM_RESIDUAL, "linear_qkv", x.h), 3);
    // DTensor sends what autograd asks for: no gradient of an input in front of which nothing trains.
    let asked =
        !x.recipe().transformers.dtensor_plan || adapters::input_needs_gradient(Operator::SelfAttention, x);
    for message in messages.iter_mut().filter(|message| !asked && message.pass == Pass::Backward) {
        message.calls = 0;
    }
    if x.model().arrangement.whole_keys && x.t > 1 {
        let cut: &[&'static Call] = &[&GATHER_KEYS, &SCATTER_KEYS];
        let calls = if x.plan.layout().sequence_parallel { cut } else { &[&REDUCE_KEYS] };
        messages.extend(Message::each(x, calls, "key_value", &[x.s, x.b, 2 * keys], 1));
    }
    messages.extend(context(x, &CONTEXT, columns));
    // Otherwise it is reduced together with the MLP's output, in the MLP.
    if !x.sums_before_reducing() {
        messages.extend(row(x, "linear_proj"));
    }
    messages
}
