//! Messages of one depth in addition to its transformer layer
//! (`megatron/core/transformer/multi_token_prediction.py`): its own look-up in the word embedding, the projection of
//! two hidden states to one, which is gathered at once, and its own pass through output layer and loss.

use crate::exchange::{ColumnCalls, column};
use crate::message::Call;
use crate::{Collective, Dimension, Message, Symbols, embedding, output_layer};
use shardscope_explain::Formula;

const SOURCE: &str = "megatron/core/transformer/multi_token_prediction.py";

static FROM_BOTH: ColumnCalls = ColumnCalls::new("2·s·b·h·B");
static GATHER_OUTPUT: Call = Call::forward(
    Dimension::Tensor,
    Collective::AllGather,
    "output",
    Formula::new(
        "s·b·h·B",
        "The projection's output columns are gathered: the layer after it reads them whole.",
        SOURCE,
    ),
);
static GATHER_GRADIENT: Call = Call::backward(
    Dimension::Tensor,
    Collective::AllGather,
    "output gradient",
    Formula::new(
        "s·b·h·B",
        "After the projection the sequence is scattered, so its gradient is gathered.",
        SOURCE,
    ),
);

pub(crate) fn messages(x: &Symbols<'_>) -> Vec<Message> {
    let mut messages = embedding::messages(x);
    messages.extend(column(x, &FROM_BOTH, "mtp.eh_proj", 2 * x.h));
    if x.t > 1 {
        let both = [&GATHER_OUTPUT, &GATHER_GRADIENT];
        // Without sequence parallelism the gathered output is complete on every rank, and so is its gradient.
        let calls = if x.plan.layout().sequence_parallel { &both[..] } else { &both[..1] };
        messages.extend(Message::each(x, calls, "mtp.eh_proj", &[x.s, x.b, x.h], 1));
    }
    messages.extend(output_layer::messages(x));
    messages
}
