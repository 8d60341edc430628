//! What forward and backward hold on the way through dispatch, experts and combination
//! (`megatron/core/transformer/moe/moe_layer.py`): while a layer runs forward its variables still reference the
//! tokens as they were sent, as they arrived, and as the experts output them.

use crate::adapters::{EXPERTS_FC1, EXPERTS_FC2};
use crate::transient::{has_weight_gradient, residual, tensors};
use crate::{Saved, Symbols, Transient};
use shardscope_explain::Formula;
use shardscope_plan::{Dispatcher, OffloadModule};
use shardscope_units::{Bytes, Count};

const LAYER: &str = "megatron/core/transformer/moe/moe_layer.py:custom_forward";
const DISPATCHER: &str = "megatron/core/transformer/moe/token_dispatcher.py";
const EXPERTS: &str = "megatron/core/transformer/moe/experts.py, backward";

static SENT: Formula =
    Formula::new("T·hm·B", "The sent copies of tokens, in the order of their experts.", LAYER);
static ARRIVED: Formula =
    Formula::new("R·hm·B", "The tokens as they arrived, before they are sorted by expert.", LAYER);
static LEFT: Formula =
    Formula::new("R·hm·B", "The experts' output, in the order in which it is sent back.", LAYER);
static RETURNED: Formula = Formula::new("T·hm·B", "The experts' output as it came back.", LAYER);
static GATHERED: Formula =
    Formula::new("S·e·et·hm·B", "The tokens of all ranks of the expert groups, gathered.", DISPATCHER);
static SUMMED: Formula = Formula::new(
    "S·e·et·hm·B",
    "The experts' output for the tokens of all ranks, before it is reduced.",
    DISPATCHER,
);
static FANNED: Formula =
    Formula::new("S·fan·hm·B", "The tokens as they arrived, each once for a destination rank.", DISPATCHER);
static COMBINED: Formula = Formula::new("S·h·B", "The layer's combined output.", LAYER);
static SHARED: Formula =
    Formula::new("S·h·B", "The shared experts' output, waiting for the routed ones'.", LAYER);
static RETURNED_GRADIENT: Formula =
    Formula::new("T·hm·B", "Gradient of what came back, a copy for every expert of a token.", EXPERTS);
static OUTPUT: Formula = Formula::new("R·hm·B", "Gradient of the experts' output.", EXPERTS);
static INNER: Formula = Formula::new("R·fm·B", "Gradient of the experts' activation output.", EXPERTS);
static BEFORE: Formula = Formula::new("g·R·fm·B", "Gradient of the experts' activation input.", EXPERTS);
static INPUT: Formula = Formula::new("R·hm·B", "Gradient of the experts' input.", EXPERTS);
static FC1_WEIGHT: Formula = Formula::new("g·fm·hm·B", "One expert's first weight gradient.", EXPERTS);

pub(crate) fn transients(x: &Symbols<'_>) -> Vec<Transient> {
    let moe = x.moe;
    let wide = [moe.received, moe.hidden];
    let elements = |count: u64, width| Count::new(count).bytes(width);
    let fc2_input = elements(moe.received * moe.ffn, x.input_width);
    let activation = elements(moe.received * moe.ffn * x.gate, x.width);
    let output = Saved::new("gradient of the experts' output", &wide, x.width, &OUTPUT);
    let inner = Saved::new("gradient of the activation's output", &[moe.received, moe.ffn], x.width, &INNER);
    let before =
        Saved::new("gradient of the activation's input", &[moe.received, x.gate * moe.ffn], x.width, &BEFORE);
    let mut first = tensors([residual(x), before]);
    first.push(Saved::new("gradient of the experts' input", &wide, x.width, &INPUT));
    if has_weight_gradient(x) {
        let shape = [x.gate * moe.ffn, moe.hidden];
        first.push(Saved::new("an expert's weight gradient", &shape, x.width, &FC1_WEIGHT));
    }
    first.extend(EXPERTS_FC1.gradient(x, Some(moe.hidden)));
    let mut second = tensors([residual(x), output, inner]);
    second.extend(EXPERTS_FC2.gradient(x, Some(moe.ffn)));
    let back = Saved::new("returned gradient", &[moe.sent, moe.hidden], x.width, &RETURNED_GRADIENT);
    vec![
        Transient::new("forward of the combination", Bytes::ZERO, combination(x)),
        Transient::new("backward of the combination", Bytes::ZERO, vec![residual(x), back, output]),
        Transient::new("backward of the experts' linear_fc2", Bytes::ZERO, second),
        Transient::new("backward of the experts' activation", fc2_input, vec![residual(x), inner, before]),
        Transient::new("backward of the experts' linear_fc1", fc2_input + activation, first)
            .with(&[OffloadModule::MoeActivation]),
    ]
}

/// What forward's variables reference when the experts' output is combined.
fn combination(x: &Symbols<'_>) -> Vec<Saved> {
    let (moe, layout) = (x.moe, x.plan.layout());
    let spread = layout.expert > 1 || layout.expert_tensor > 1;
    let local = moe.experts / layout.expert.max(1);
    let sent = [moe.sent, moe.hidden];
    let received = [moe.received, moe.hidden];
    let mut out = match x.recipe().moe.dispatcher {
        Dispatcher::AllToAll => {
            let mut out = vec![Saved::new("sent tokens", &sent, x.width, &SENT)];
            // A rank with a single expert gets its tokens in the expert's order: there is nothing to sort after the all-to-all.
            if spread && local > 1 {
                out.push(Saved::new("arrived tokens", &received, x.width, &ARRIVED));
            }
            out.push(Saved::new("experts' output", &received, x.width, &LEFT));
            if spread {
                out.push(Saved::new("returned tokens", &sent, x.width, &RETURNED));
            }
            out
        }
        Dispatcher::AllGather => {
            let all = [x.s_local * layout.expert * layout.expert_tensor, moe.hidden];
            vec![
                Saved::new("gathered tokens", &all, x.width, &GATHERED),
                Saved::new("experts' output", &received, x.width, &LEFT),
                Saved::new("output for all ranks", &all, x.width, &SUMMED),
            ]
        }
        Dispatcher::Flex => {
            let fanned = [x.s_local * moe.fan, moe.hidden];
            vec![
                Saved::new("arrived tokens", &fanned, x.width, &FANNED),
                Saved::new("experts' output", &received, x.width, &LEFT),
            ]
        }
    };
    out.push(Saved::new("combined output", &[x.s_local, x.h], x.width, &COMBINED));
    if moe.shared > 0 {
        out.push(Saved::new("shared experts' output", &[x.s_local, x.h], x.width, &SHARED));
    }
    out
}
