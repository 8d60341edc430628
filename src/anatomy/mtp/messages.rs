//! Messages of one depth beside its transformer layer (`megatron/core/transformer/multi_token_prediction.py`):
//! its own look-up in the word embedding, the projection of two hidden states to one, which is gathered
//! at once, and its own pass through output layer and loss.

use crate::anatomy::exchange::column;
use crate::anatomy::message::Call;
use crate::anatomy::{Collective, Dimension, Message, Pass, Symbols, embedding, output_layer};
use crate::explain::Formula;

const SOURCE: &str = "Megatron-LM megatron/core/transformer/multi_token_prediction.py";

static GATHER_OUTPUT: Call = Call {
    dimension: Dimension::Tensor,
    collective: Collective::AllGather,
    pass: Pass::Forward,
    tensor: "output",
    formula: Formula {
        expression: "s·b·h·B",
        meaning: "The columns of the projection are gathered, the layer behind it wants them whole.",
        source: SOURCE,
    },
};

static GATHER_GRADIENT: Call = Call {
    dimension: Dimension::Tensor,
    collective: Collective::AllGather,
    pass: Pass::Backward,
    tensor: "output gradient",
    formula: Formula {
        expression: "s·b·h·B",
        meaning: "Sequence parallel: behind the projection the sequence is cut, so its gradient is gathered.",
        source: SOURCE,
    },
};

pub(in crate::anatomy) fn messages(x: &Symbols<'_>) -> Vec<Message> {
    let mut messages = embedding::messages(x);
    messages.extend(projection(x));
    messages.extend(output_layer::messages(x));
    messages
}

/// Around the projection: what full recomputation of the depth repeats.
fn projection(x: &Symbols<'_>) -> Vec<Message> {
    let mut messages = column(x, "mtp.eh_proj", 2 * x.h);
    if x.t > 1 {
        let message = |call| Message::new(x, call, "mtp.eh_proj", &[x.s, x.b, x.h]);
        messages.push(message(&GATHER_OUTPUT));
        if x.plan.layout().sequence_parallel {
            messages.push(message(&GATHER_GRADIENT));
        }
    }
    messages
}
