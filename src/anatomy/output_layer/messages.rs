//! Messages: around the column-parallel output layer, and of the vocabulary-parallel cross entropy.

use crate::anatomy::exchange::column;
use crate::anatomy::message::Call;
use crate::anatomy::{Collective, Dimension, Message, Pass, Symbols};
use crate::explain::Formula;
use crate::plan::{LossKind, Number};

const SOURCE: &str = "Megatron-LM megatron/core/tensor_parallel/cross_entropy.py";

macro_rules! loss_call {
    ($name:ident, $collective:ident, $tensor:literal, $size:literal, $why:literal, $source:expr) => {
        static $name: Call = Call {
            dimension: Dimension::Tensor,
            collective: Collective::$collective,
            pass: Pass::Forward,
            tensor: $tensor,
            formula: Formula { expression: $size, meaning: $why, source: $source },
        };
    };
}

loss_call!(
    GREATEST,
    AllReduce,
    "greatest logits",
    "s·b·4",
    "The greatest logit of each token over all rows.",
    SOURCE
);
loss_call!(
    TARGET,
    AllReduce,
    "target logits",
    "s·b·4",
    "The target's logit, known to one rank alone.",
    SOURCE
);
loss_call!(SUM, AllReduce, "sums of exponentials", "s·b·4", "The sum of exponentials of each token.", SOURCE);
loss_call!(
    TARGET_AND_SUM,
    AllReduce,
    "target logits and sums",
    "2·s·b·4",
    "The fused kernel sends the target's logit and the sum of exponentials together.",
    "Megatron-LM megatron/core/fusions/fused_cross_entropy.py"
);
loss_call!(
    ALL_THREE,
    AllGather,
    "greatest, sum and target",
    "3·t·s·b·4",
    "Each rank's greatest logit, sum and target logit are gathered and combined by everyone.",
    "TransformerEngine transformer_engine/pytorch/triton/cross_entropy.py"
);

pub(in crate::anatomy) fn messages(x: &Symbols<'_>) -> Vec<Message> {
    let mut messages = column(x, "output_layer", x.h);
    if x.t > 1 {
        messages.extend(loss(x));
    }
    messages.into_iter().map(Message::outside).collect()
}

fn loss(x: &Symbols<'_>) -> Vec<Message> {
    let each = |call, times: u64| {
        Message::new(x, call, "cross_entropy", &[times * x.s, x.b]).in_format(Number::Fp32)
    };
    match x.recipe().loss {
        LossKind::Legacy | LossKind::Unfused => vec![each(&GREATEST, 1), each(&TARGET, 1), each(&SUM, 1)],
        LossKind::NativeFused => vec![each(&GREATEST, 1), each(&TARGET_AND_SUM, 2)],
        LossKind::TransformerEngine => vec![each(&ALL_THREE, 3 * x.t)],
    }
}
