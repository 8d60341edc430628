//! Messages of a mixture of experts (`megatron/core/transformer/moe/token_dispatcher.py`): tokens go to the
//! ranks of their experts and come back. `T` tokens on this rank, `k` experts per token, balanced.
//! Routing decisions have no gradient; everything else has its mirror in the backward pass.

use crate::anatomy::exchange::{column, row, within};
use crate::anatomy::message::Call;
use crate::anatomy::{Collective, Dimension, Message, Pass, Symbols};
use crate::explain::Formula;
use crate::plan::{Dispatcher, Experts, RecomputeModule};

const SOURCE: &str = "Megatron-LM megatron/core/transformer/moe/token_dispatcher.py";
const MOE: &[RecomputeModule] = &[RecomputeModule::Moe];
const SHARED: &[RecomputeModule] = &[RecomputeModule::Moe, RecomputeModule::SharedExperts];

macro_rules! call {
    ($name:ident, $dimension:ident, $collective:ident, $pass:ident, $tensor:literal, $size:literal, $why:literal) => {
        static $name: Call = Call {
            dimension: Dimension::$dimension,
            collective: Collective::$collective,
            pass: Pass::$pass,
            tensor: $tensor,
            formula: Formula { expression: $size, meaning: $why, source: SOURCE },
        };
    };
}

call!(
    GATHER_MAP,
    TensorExpert,
    AllGather,
    Forward,
    "routing map",
    "et·e·T·E",
    "Which expert each token goes to, of all ranks."
);
call!(
    GATHER_PROBS,
    TensorExpert,
    AllGather,
    Forward,
    "probabilities",
    "et·e·T·E·B",
    "The routing probabilities of all ranks' tokens."
);
call!(
    GATHER_PROBS_BACK,
    TensorExpert,
    ReduceScatter,
    Backward,
    "probability gradients",
    "et·e·T·E·B",
    "The mirror of gathering them."
);
call!(
    GATHER_TOKENS,
    TensorExpert,
    AllGather,
    Forward,
    "tokens",
    "et·e·T·h·B",
    "Every rank gets all tokens and picks those of its experts."
);
call!(
    GATHER_TOKENS_BACK,
    TensorExpert,
    ReduceScatter,
    Backward,
    "token gradients",
    "et·e·T·h·B",
    "The mirror of gathering the tokens."
);
call!(
    COMBINE_SCATTER,
    TensorExpert,
    ReduceScatter,
    Forward,
    "expert outputs",
    "et·e·T·h·B",
    "The experts' outputs are added up and each rank gets its own tokens back."
);
call!(
    COMBINE_SCATTER_BACK,
    TensorExpert,
    AllGather,
    Backward,
    "output gradients",
    "et·e·T·h·B",
    "The mirror of combining."
);
call!(
    COUNTS,
    TensorExpert,
    AllGather,
    Forward,
    "token counts",
    "et·e·E·8",
    "How many tokens each rank has for each expert."
);
call!(
    DISPATCH,
    Expert,
    AllToAll,
    Forward,
    "tokens",
    "T·k·h·B",
    "Each token goes to each of its experts, k copies of it when they are on k ranks."
);
call!(DISPATCH_BACK, Expert, AllToAll, Backward, "token gradients", "T·k·h·B", "The mirror of dispatching.");
call!(
    DISPATCH_PROBS,
    Expert,
    AllToAll,
    Forward,
    "probabilities",
    "T·k·B",
    "The probability of each token that is sent."
);
call!(
    DISPATCH_PROBS_BACK,
    Expert,
    AllToAll,
    Backward,
    "probability gradients",
    "T·k·B",
    "The mirror of sending them."
);
call!(COMBINE, Expert, AllToAll, Forward, "expert outputs", "T·k·h·B", "The experts' outputs go back.");
call!(COMBINE_BACK, Expert, AllToAll, Backward, "output gradients", "T·k·h·B", "The mirror of combining.");
call!(
    SPREAD,
    ExpertTensor,
    AllGather,
    Forward,
    "dispatched tokens",
    "et·T·k·h·B",
    "The ranks that share an expert need each other's tokens."
);
call!(
    SPREAD_BACK,
    ExpertTensor,
    ReduceScatter,
    Backward,
    "dispatched token gradients",
    "et·T·k·h·B",
    "The mirror of spreading them."
);
call!(
    SPREAD_PROBS,
    ExpertTensor,
    AllGather,
    Forward,
    "dispatched probabilities",
    "et·T·k·B",
    "And their probabilities."
);
call!(
    SPREAD_PROBS_BACK,
    ExpertTensor,
    ReduceScatter,
    Backward,
    "dispatched probability gradients",
    "et·T·k·B",
    "The mirror of spreading them."
);
call!(
    GATHERED,
    ExpertTensor,
    ReduceScatter,
    Forward,
    "expert summands",
    "et·T·k·h·B",
    "Each of the ranks that share an expert has a summand of its output."
);
call!(
    GATHERED_BACK,
    ExpertTensor,
    AllGather,
    Backward,
    "expert output gradients",
    "et·T·k·h·B",
    "The mirror of adding the summands."
);
call!(
    FUSED,
    TensorExpert,
    AllToAll,
    Forward,
    "tokens",
    "T·min(k, e)·et·h·B",
    "A token goes once to each rank that holds one of its experts, at most min(k, e) ranks; its probabilities with it."
);
call!(
    FUSED_BACK,
    TensorExpert,
    AllToAll,
    Backward,
    "token gradients",
    "T·min(k, e)·et·h·B",
    "The mirror of dispatching."
);
call!(
    FUSED_COMBINE,
    TensorExpert,
    AllToAll,
    Forward,
    "expert outputs",
    "T·min(k, e)·et·h·B",
    "One sum per rank comes back."
);
call!(
    FUSED_COMBINE_BACK,
    TensorExpert,
    AllToAll,
    Backward,
    "output gradients",
    "T·min(k, e)·et·h·B",
    "The mirror of combining."
);

pub(in crate::anatomy) fn messages(x: &Symbols<'_>) -> Vec<Message> {
    let Some(experts) = &x.model().experts else { return Vec::new() };
    let layout = x.plan.layout();
    let mut messages = Vec::new();
    if layout.expert * layout.expert_tensor > 1 {
        let routed = match x.recipe().moe.dispatcher {
            Dispatcher::AllGather => gathered(x, experts),
            Dispatcher::AllToAll => exchanged(x, experts),
            Dispatcher::Flex => fused(x, experts),
        };
        let overlap = x.recipe().overlap.expert;
        messages.extend(within(routed, MOE).map(|message| message.hidden(overlap)));
    }
    messages.extend(shared(x, experts));
    messages
}

/// Width of a token between router and experts.
fn width(x: &Symbols<'_>, experts: &Experts) -> u64 {
    experts.latent_size.unwrap_or(x.h)
}

fn gathered(x: &Symbols<'_>, experts: &Experts) -> Vec<Message> {
    let layout = x.plan.layout();
    let tokens = layout.expert * layout.expert_tensor * x.s_local;
    let format = x.recipe().moe.router_dtype;
    let of_experts = |call| Message::new(x, call, "router", &[tokens, experts.num_experts]);
    let of_tokens = |call| Message::new(x, call, "dispatcher", &[tokens, width(x, experts)]);
    vec![
        of_experts(&GATHER_MAP).in_booleans(),
        of_experts(&GATHER_PROBS).in_format(format),
        of_experts(&GATHER_PROBS_BACK).in_format(format),
        of_tokens(&GATHER_TOKENS),
        of_tokens(&GATHER_TOKENS_BACK),
        of_tokens(&COMBINE_SCATTER),
        of_tokens(&COMBINE_SCATTER_BACK),
    ]
}

fn exchanged(x: &Symbols<'_>, experts: &Experts) -> Vec<Message> {
    let layout = x.plan.layout();
    let (e, et) = (layout.expert, layout.expert_tensor);
    let format = x.recipe().moe.router_dtype;
    let sent = sent_tokens(x, experts);
    let tokens = |call, times| Message::new(x, call, "dispatcher", &[times * sent, width(x, experts)]);
    let probs = |call, times| Message::new(x, call, "dispatcher", &[times * sent]).in_format(format);
    let mut out = vec![Message::new(x, &COUNTS, "dispatcher", &[e * et, experts.num_experts]).in_integers()];
    if e > 1 {
        out.extend([&DISPATCH, &DISPATCH_BACK, &COMBINE, &COMBINE_BACK].map(|call| tokens(call, 1)));
        out.extend([&DISPATCH_PROBS, &DISPATCH_PROBS_BACK].map(|call| probs(call, 1)));
    }
    if et > 1 {
        out.extend([&SPREAD, &SPREAD_BACK, &GATHERED, &GATHERED_BACK].map(|call| tokens(call, et)));
        out.extend([&SPREAD_PROBS, &SPREAD_PROBS_BACK].map(|call| probs(call, et)));
    }
    out
}

fn fused(x: &Symbols<'_>, experts: &Experts) -> Vec<Message> {
    let layout = x.plan.layout();
    let copies = experts.router_topk.min(layout.expert) * layout.expert_tensor;
    let shape = [x.s_local * copies, width(x, experts)];
    [&FUSED, &FUSED_BACK, &FUSED_COMBINE, &FUSED_COMBINE_BACK]
        .map(|call| Message::new(x, call, "dispatcher", &shape))
        .to_vec()
}

/// Copies of tokens that a rank sends to experts: every token `k` times, no more than the experts' capacity,
/// and exactly that where inputs are padded to it (`moe_utils.py:get_capacity`).
fn sent_tokens(x: &Symbols<'_>, experts: &Experts) -> u64 {
    let moe = &x.recipe().moe;
    let copies = x.s_local * experts.router_topk;
    match moe.capacity_factor {
        Some(factor) if factor > 0.0 => {
            let capacity = capacity(copies, factor, experts.num_experts) * experts.num_experts;
            if moe.pad_to_capacity { capacity } else { capacity.min(copies) }
        }
        _ => copies,
    }
}

#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn capacity(copies: u64, factor: f64, experts: u64) -> u64 {
    (copies as f64 * factor / experts.max(1) as f64).ceil() as u64
}

/// Shared experts are cut like a dense MLP.
fn shared(x: &Symbols<'_>, experts: &Experts) -> Vec<Message> {
    if experts.shared_expert_intermediate_size.is_none() {
        return Vec::new();
    }
    let mut messages = column(x, "shared_experts.linear_fc1", x.h);
    messages.extend(row(x, "shared_experts.linear_fc2"));
    let overlap = x.recipe().overlap.shared_expert;
    within(messages, SHARED)
        .map(|message| {
            let hidden = message.overlapped || overlap;
            message.hidden(hidden)
        })
        .collect()
}
