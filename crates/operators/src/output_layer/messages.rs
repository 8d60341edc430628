//! Messages: around the column-parallel output layer, and of the vocabulary-parallel cross entropy.

use crate::exchange::{FROM_RESIDUAL, column_of};
use crate::message::Call;
use crate::{Collective, Dimension, Message, Symbols};
use shardscope_explain::Formula;
use shardscope_plan::{LossKind, NumberFormat};

const LOSS: &str = "megatron/core/tensor_parallel/cross_entropy.py";
const FUSED: &str = "megatron/core/fusions/fused_cross_entropy.py";
const TRITON: &str = "TransformerEngine, pytorch/triton/cross_entropy.py";

const fn reduced(tensor: &'static str, formula: Formula) -> Call {
    Call::forward(Dimension::Tensor, Collective::AllReduce, tensor, formula)
}

static GREATEST: Call = reduced(
    "greatest logits",
    Formula::new("s·b·4", "Each token's max logit over the whole vocabulary, fp32.", LOSS),
);
static TARGET: Call = reduced(
    "target logits",
    Formula::new("s·b·4", "The logit of each token's target, known to one rank alone, fp32.", LOSS),
);
static SUM: Call =
    reduced("sums", Formula::new("s·b·4", "The sum of exponentials of each token, fp32.", LOSS));
static TARGET_AND_SUM: Call = reduced(
    "target logits and sums",
    Formula::new("2·s·b·4", "The fused loss sends target logits and sums of exponentials together.", FUSED),
);
static GATHER_LOGITS: Call = Call::forward(
    Dimension::Tensor,
    Collective::AllGather,
    "logits",
    Formula::new(
        "t·s·b·V·B",
        "Every rank gathers the logits of the whole vocabulary, and takes the loss of them.",
        "scaletorch/parallel/tensor_parallel/tp_comms.py:GatherFromModelParallelRegion",
    ),
);
static GATHER_FP32_LOGITS: Call = Call::forward(
    Dimension::Tensor,
    Collective::AllGather,
    "logits",
    Formula::new(
        "4·t·s·b·V",
        "Every rank gathers the logits of the whole vocabulary in fp32, and takes the loss of them.",
        "nemo_automodel/components/loss/masked_ce.py:MaskedCrossEntropy.forward",
    ),
);
const KERNEL: &str = "verl/utils/kernel/kernels.py:efficient_entropy_forward";
static GREATEST_BY_STRETCH: Call = reduced(
    "greatest logits by stretch",
    Formula::new("s·b·parts·4", "Each token's max logit of each stretch of 1,024 words, fp32.", KERNEL),
);
static LOG_PROBS: Call = reduced(
    "log-probabilities",
    Formula::new("s·b·4", "The logit of each token's target, known to one rank alone, fp32.", KERNEL),
);
static BOTH_SUMS: Call = reduced(
    "sums",
    Formula::new("2·s·b·4", "The sum of exponentials of each token, and its entropy's, fp32.", KERNEL),
);
static ALL_THREE: Call = Call::forward(
    Dimension::Tensor,
    Collective::AllGather,
    "max, sum and target",
    Formula::new(
        "3·t·s·b·4",
        "Every rank gathers the max logit, sum of exponentials and target logit of all others.",
        TRITON,
    ),
);

pub(crate) fn messages(x: &Symbols<'_>) -> Vec<Message> {
    // verl's kernel keeps its input as it was gathered.
    let again = x.recipe().tuning.head && x.recipe().loss != LossKind::PolicyKernel;
    let mut messages = column_of(x, &FROM_RESIDUAL, "output_layer", x.h, again);
    if x.t > 1 && x.recipe().software.semantics().gathers_logits {
        messages.push(Message::new(x, &GATHER_LOGITS, "output_layer", &[x.s, x.b, x.t * x.v]));
    } else if x.gathers_fp32_logits() {
        let whole = Message::new(x, &GATHER_FP32_LOGITS, "output_layer", &[x.s, x.b, x.t * x.v]);
        messages.push(whole.in_format(NumberFormat::Fp32));
    } else if x.t > 1 {
        messages.extend(loss(x));
    }
    Message::outside(messages)
}

fn loss(x: &Symbols<'_>) -> Vec<Message> {
    let calls: &[(&'static Call, u64)] = match x.recipe().loss {
        LossKind::Legacy
        | LossKind::Unfused
        | LossKind::Torch
        | LossKind::TorchNarrow
        | LossKind::Compiled
        | LossKind::FusedLinear
        | LossKind::ChunkedLogits
        | LossKind::ChunkedLinear
        | LossKind::FusedLogits
        | LossKind::InPlaceLogits
        | LossKind::ChunkedRows
        | LossKind::Distributed
        | LossKind::DistributedCopy
        | LossKind::DistributedChunks(_)
        | LossKind::DistributedWideChunks(_)
        | LossKind::Tiled(_)
        | LossKind::FusedTiles
        | LossKind::PolicyRows
        | LossKind::TokenKernel => &[(&GREATEST, 1), (&TARGET, 1), (&SUM, 1)],
        LossKind::PolicyKernel => {
            &[(&GREATEST_BY_STRETCH, x.kernel_parts()), (&LOG_PROBS, 1), (&BOTH_SUMS, 2)]
        }
        // One all-reduce less: latency counts here, each of these messages is only a few bytes per token.
        LossKind::NativeFused => &[(&GREATEST, 1), (&TARGET_AND_SUM, 2)],
        // An all-gather's message is the gathered tensor: three fp32 values per token from each of t ranks.
        LossKind::TransformerEngine => &[(&ALL_THREE, 3 * x.t)],
    };
    let mut messages = Vec::with_capacity(calls.len());
    for (call, rows) in calls {
        let message = Message::new(x, call, "cross_entropy", &[rows * x.s, x.b]);
        // Statistics of the softmax are fp32 regardless of the logits' format.
        messages.push(message.in_format(NumberFormat::Fp32));
    }
    messages
}
