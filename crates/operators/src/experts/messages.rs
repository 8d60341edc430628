//! Messages of a mixture of experts (`megatron/core/transformer/moe/token_dispatcher.py`): tokens go to the ranks of
//! their experts and come back, evenly routed. Routing decisions have no gradient; everything else has a counterpart
//! in the backward pass.

use crate::exchange::{FROM_RESIDUAL, column, row, within};
use crate::message::Call;
use crate::{Collective, Dimension, Message, Symbols};
use shardscope_explain::Formula;
use shardscope_plan::{Dispatcher, RecomputeModule};

const SOURCE: &str = "megatron/core/transformer/moe/token_dispatcher.py";
const MOE: &[RecomputeModule] = &[RecomputeModule::Moe];
const SHARED: &[RecomputeModule] = &[RecomputeModule::Moe, RecomputeModule::SharedExperts];

macro_rules! calls {
    ($($name:ident $pass:ident $dimension:ident $collective:ident $tensor:literal $size:literal $why:literal;)*) => {
        $(static $name: Call = Call::$pass(
            Dimension::$dimension,
            Collective::$collective,
            $tensor,
            Formula::new($size, $why, SOURCE),
        );)*
    };
}

calls! {
    GATHER_MAP forward TensorExpert AllGather "routing map" "et·e·S·E" "The routing map of every rank's tokens.";
    GATHER_PROBABILITIES forward TensorExpert AllGather "probabilities" "et·e·S·E·Bp" "The routing probabilities of every rank's tokens.";
    SCATTER_PROBABILITIES backward TensorExpert ReduceScatter "probability gradients" "et·e·S·E·Bp" "The backward pass of the gather.";
    GATHER_TOKENS forward TensorExpert AllGather "tokens" "et·e·S·hm·B" "Every rank gathers all tokens and picks those routed to its experts.";
    SCATTER_TOKENS backward TensorExpert ReduceScatter "token gradients" "et·e·S·hm·B" "The backward pass of gathering the tokens.";
    SCATTER_OUTPUTS forward TensorExpert ReduceScatter "expert outputs" "et·e·S·hm·B" "The experts' outputs are reduced; each rank gets those of its own tokens.";
    GATHER_OUTPUTS backward TensorExpert AllGather "output gradients" "et·e·S·hm·B" "The backward pass of this reduction.";
    COUNTS forward TensorExpert AllGather "token counts" "et·e·E·8" "Token counts per rank and expert, int64.";
    DISPATCH forward Expert AllToAll "tokens" "T·hm·B" "Each token is sent once per expert it is routed to, whether or not these experts share a rank.";
    DISPATCH_BACK backward Expert AllToAll "token gradients" "T·hm·B" "The backward pass of the dispatch.";
    PROBABILITIES forward Expert AllToAll "probabilities" "T·Bp" "The routing probability of every copy.";
    PROBABILITIES_BACK backward Expert AllToAll "probability gradients" "T·Bp" "The backward pass of sending them.";
    COMBINE forward Expert AllToAll "expert outputs" "T·hm·B" "The experts' outputs go back.";
    COMBINE_BACK backward Expert AllToAll "output gradients" "T·hm·B" "The backward pass of the combine.";
    SPREAD forward ExpertTensor AllGather "dispatched tokens" "et·T·hm·B" "Ranks that share an expert need each other's tokens.";
    SPREAD_BACK backward ExpertTensor ReduceScatter "dispatched token gradients" "et·T·hm·B" "The backward pass of scattering them.";
    SPREAD_PROBABILITIES forward ExpertTensor AllGather "dispatched probabilities" "et·T·Bp" "And the probabilities of these tokens.";
    SPREAD_PROBABILITIES_BACK backward ExpertTensor ReduceScatter "dispatched probability gradients" "et·T·Bp" "The backward pass of scattering them.";
    ADD_UP forward ExpertTensor ReduceScatter "expert summands" "et·T·hm·B" "Each of the ranks that share an expert holds a partial sum of its output.";
    ADD_UP_BACK backward ExpertTensor AllGather "expert output gradients" "et·T·hm·B" "The backward pass of this reduction.";
    FUSED forward TensorExpert AllToAll "tokens" "S·fan·hm·B" "A token is sent once to each rank that holds one of its experts, along with its probabilities.";
    FUSED_BACK backward TensorExpert AllToAll "token gradients" "S·fan·hm·B" "The backward pass of the dispatch.";
    FUSED_COMBINE forward TensorExpert AllToAll "expert outputs" "S·fan·hm·B" "Each of these ranks returns one partial sum.";
    FUSED_COMBINE_BACK backward TensorExpert AllToAll "output gradients" "S·fan·hm·B" "The backward pass of the combine.";
}

pub(crate) fn messages(x: &Symbols<'_>) -> Vec<Message> {
    let Some(experts) = &x.model().experts else { return Vec::new() };
    let layout = x.plan.layout();
    let mut messages = Vec::new();
    // With all experts on the rank the dispatcher only permutes.
    if layout.expert * layout.expert_tensor > 1 {
        let routed = match x.recipe().moe.dispatcher {
            Dispatcher::AllGather => gathered(x),
            Dispatcher::AllToAll => exchanged(x),
            Dispatcher::Flex => fused(x),
        };
        let overlap = x.recipe().overlap.expert;
        messages = within(routed, MOE);
        for message in &mut messages {
            message.overlapped = overlap;
        }
    }
    if experts.shared_expert_intermediate_size.is_some() {
        messages.extend(shared(x));
    }
    messages
}

fn gathered(x: &Symbols<'_>) -> Vec<Message> {
    let layout = x.plan.layout();
    let tokens = layout.expert * layout.expert_tensor * x.s_local;
    let format = x.recipe().moe.router_dtype;
    let calls = [&GATHER_MAP, &GATHER_PROBABILITIES, &SCATTER_PROBABILITIES];
    let mut out = Message::each(x, &calls, "router", &[tokens, x.moe.experts], 1);
    if let [map, probabilities @ ..] = &mut out[..] {
        map.set_booleans();
        for message in probabilities {
            message.set_format(format);
        }
    }
    let calls = [&GATHER_TOKENS, &SCATTER_TOKENS, &SCATTER_OUTPUTS, &GATHER_OUTPUTS];
    out.extend(Message::each(x, &calls, "dispatcher", &[tokens, x.moe.hidden], 1));
    out
}

fn exchanged(x: &Symbols<'_>) -> Vec<Message> {
    let layout = x.plan.layout();
    let (e, et, sent) = (layout.expert, layout.expert_tensor, x.moe.sent);
    let format = x.recipe().moe.router_dtype;
    let tokens = |calls: &[&'static Call], times| {
        Message::each(x, calls, "dispatcher", &[times * sent, x.moe.hidden], 1)
    };
    let probabilities = |calls: &[&'static Call], times| {
        let mut messages = Message::each(x, calls, "dispatcher", &[times * sent], 1);
        for message in &mut messages {
            message.set_format(format);
        }
        messages
    };
    let mut out = vec![Message::new(x, &COUNTS, "dispatcher", &[e * et, x.moe.experts]).in_integers()];
    if e > 1 {
        out.extend(tokens(&[&DISPATCH, &DISPATCH_BACK, &COMBINE, &COMBINE_BACK], 1));
        out.extend(probabilities(&[&PROBABILITIES, &PROBABILITIES_BACK], 1));
    }
    if et > 1 {
        out.extend(tokens(&[&SPREAD, &SPREAD_BACK, &ADD_UP, &ADD_UP_BACK], et));
        out.extend(probabilities(&[&SPREAD_PROBABILITIES, &SPREAD_PROBABILITIES_BACK], et));
    }
    out
}

fn fused(x: &Symbols<'_>) -> Vec<Message> {
    let shape = [x.s_local * x.moe.fan, x.moe.hidden];
    let calls = [&FUSED, &FUSED_BACK, &FUSED_COMBINE, &FUSED_COMBINE_BACK];
    Message::each(x, &calls, "dispatcher", &shape, 1)
}

/// Shared experts are sharded like a dense MLP.
fn shared(x: &Symbols<'_>) -> Vec<Message> {
    let mut messages = column(x, &FROM_RESIDUAL, "shared_experts.linear_fc1", x.h);
    messages.extend(row(x, "shared_experts.linear_fc2"));
    let overlap = x.recipe().overlap.shared_expert;
    for message in &mut messages {
        message.overlapped |= overlap;
    }
    within(messages, SHARED)
}
