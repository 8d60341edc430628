//! Tensors saved for backward: router, dispatcher, experts, shared experts. Routing is assumed to be balanced.

use crate::adapters::{Alive, EXPERTS_FC1, EXPERTS_FC2, SHARED_FC1, SHARED_FC2};
use crate::attention::residual_mask;
use crate::{Operator, Saved, Symbols, norm};
use shardscope_explain::Formula;
use shardscope_plan::{Dispatcher, OffloadModule, RecomputeModule};

const LAYER: &str = "megatron/core/transformer/moe/moe_layer.py";
const ROUTER: &str = "megatron/core/transformer/moe/router.py";
const DISPATCHER: &str = "megatron/core/transformer/moe/token_dispatcher.py";
const EXPERTS: &str = "megatron/core/transformer/moe/experts.py";
const SHARED: &str = "megatron/core/transformer/moe/shared_experts.py";
/// Bytes of an fp32 number.
const FLOAT: u64 = 4;
/// Bytes of a torch index (int64).
const INDEX: u64 = 8;
/// What grouped experts save in their first projection, and in their activation (`experts.py:TEGroupedMLP`).
const FC1: &[OffloadModule] = &[OffloadModule::ExpertsFc1];
const ACT: &[OffloadModule] = &[OffloadModule::MoeActivation];

static CHECKPOINTED: Formula = Formula::new("S·h·B", "The recomputed MoE layer's input.", LAYER);
static INPUT: Formula =
    Formula::new("S·h·B", "The router's input, which is the shared experts' too: the norm's output.", ROUTER);
static TOPK: Formula = Formula::new("S·topk·8", "The top-k experts of each token, int64.", ROUTER);
static CHOSEN: Formula = Formula::new("S·topk·4", "Softmax over the top-k experts, fp32.", ROUTER);
static SCORES: Formula = Formula::new("S·E·4", "Softmax over all experts, fp32.", ROUTER);
static AUX_SCORES: Formula =
    Formula::new("S·E·4", "Scores of all experts for the load-balancing loss, fp32.", ROUTER);
static AUX_COUNTS: Formula =
    Formula::new("E·8", "Tokens per expert for the load-balancing loss, int64.", ROUTER);
static AUX_SCALAR: Formula = Formula::new("4", "The load-balancing loss's coefficient, fp32.", ROUTER);
static CAPACITY: Formula =
    Formula::new("S·E", "Which tokens fit an expert's capacity, one byte each.", ROUTER);
static PERMUTE: Formula = Formula::new("T·8", "Source row of every sent copy, int64.", DISPATCHER);
static UNPERMUTE: Formula = Formula::new("T·8", "Source row of every returned copy, int64.", DISPATCHER);
static SORTED_MAP: Formula =
    Formula::new("S·E·8", "The sorted routing map, int64: it grows with all experts.", DISPATCHER);
static ROW_MAP: Formula = Formula::new(
    "S·(2·E + 1)·4",
    "The fused permutation's row map, int32: it grows with all experts.",
    "transformer_engine/pytorch/permutation.py",
);
static RECEIVED: Formula = Formula::new("R·8", "Source row of every received copy, int64.", DISPATCHER);
static GATHERED_MAP: Formula =
    Formula::new("M", "The gathered routing map of the local experts, one byte each.", DISPATCHER);
static GATHERED_PROBABILITIES: Formula =
    Formula::new("M·Bp", "The gathered probabilities of the local experts.", DISPATCHER);
static EXPERT_INPUT: Formula = Formula::new("R·hm·Bi", "The experts' first projection's input.", EXPERTS);
static ACTIVATION: Formula = Formula::new("g·R·fm·B", "The experts' activation input.", EXPERTS);
static PROBABILITIES: Formula =
    Formula::new("R·Bp", "The routing probabilities, multiplied in at the activation.", EXPERTS);
static UNFUSED: Formula =
    Formula::new("R·fm·B", "A tensor between the unfused steps of the activation.", EXPERTS);
static EXPERT_OUTPUT: Formula = Formula::new("R·fm·Bi", "The experts' second projection's input.", EXPERTS);
static LATENT_INPUT: Formula = Formula::new("S·h·Bi", "The latent down-projection's input.", LAYER);
static LATENT_OUTPUT: Formula = Formula::new("S·hm·Bi", "The latent up-projection's input.", LAYER);
static SHARED_ACTIVATION: Formula = Formula::new("g·n·fs·B", "The shared experts' activation input.", SHARED);
static SHARED_OUTPUT: Formula =
    Formula::new("n·fs·Bi", "The shared experts' second projection's input.", SHARED);
static SHARED_UNFUSED: Formula =
    Formula::new("n·fs·B", "A tensor between the unfused steps of the activation.", SHARED);
static GATE_SCORE: Formula = Formula::new("S·B", "The shared experts' gate of each token.", SHARED);
static GATED: Formula =
    Formula::new("S·h·B", "The shared experts' output, kept by the gate's product.", SHARED);

pub(crate) fn saved(x: &Symbols<'_>) -> Vec<Saved> {
    let mut out = Vec::with_capacity(18);
    // A recomputed norm discards its output, which is this layer's input, so nothing of it is saved here.
    let normed = norm::is_recomputed(Operator::PreExpertsNorm, x);
    if x.recomputes(RecomputeModule::Moe) {
        if !normed {
            out.push(Saved::new("moe input", &[x.s_local, x.h], x.width, &CHECKPOINTED));
        }
    } else {
        if !normed {
            out.push(Saved::new("router input", &[x.s_local, x.h], x.width, &INPUT));
        }
        out.extend(router(x));
        out.extend(latent(x));
        out.extend(dispatcher(x));
        out.extend(experts(x));
        out.extend(shared(x));
    }
    out.extend(residual_mask(x));
    out
}

fn router(x: &Symbols<'_>) -> Vec<Saved> {
    let moe = x.moe;
    let mut out = vec![Saved::new("router top-k indices", &[x.s_local, moe.topk], INDEX, &TOPK)];
    // A softmax before the choice runs over all experts, one after it only over the chosen ones.
    out.push(if moe.topk == 1 || x.recipe().moe.pre_softmax {
        Saved::new("router softmax", &[x.s_local, moe.experts], FLOAT, &SCORES)
    } else {
        Saved::new("router softmax", &[x.s_local, moe.topk], FLOAT, &CHOSEN)
    });
    if x.recipe().moe.load_balancing.has_loss() {
        out.push(Saved::new("balancing scores", &[x.s_local, moe.experts], FLOAT, &AUX_SCORES));
        out.push(Saved::new("balancing counts", &[moe.experts], INDEX, &AUX_COUNTS));
        out.push(Saved::new("balancing scalar", &[1], FLOAT, &AUX_SCALAR));
    }
    out
}

fn latent(x: &Symbols<'_>) -> Vec<Saved> {
    if x.model().experts.as_ref().is_none_or(|experts| experts.latent_size.is_none()) {
        return Vec::new();
    }
    let mut out = Vec::with_capacity(2);
    // In 16 bits the down-projection's input is the router's, one storage that is counted there; fp8 saves a separate
    // copy.
    if x.recipe().fp8.is_some() {
        out.push(Saved::new("latent down input", &[x.s_local, x.h], x.input_width, &LATENT_INPUT));
    }
    out.push(Saved::new("latent up input", &[x.s_local, x.moe.hidden], x.input_width, &LATENT_OUTPUT));
    out
}

fn dispatcher(x: &Symbols<'_>) -> Vec<Saved> {
    let moe = x.moe;
    let map = [x.s_local, moe.experts];
    // A capacity changes what permutation saves, regardless of the dispatcher.
    if x.recipe().moe.capacity_factor.is_some() {
        let mask = Saved::new("capacity mask", &map, 1, &CAPACITY);
        if x.recipe().moe.permute_fusion {
            let rows = [x.s_local, 2 * moe.experts + 1];
            return vec![mask, Saved::new("row map", &rows, INDEX / 2, &ROW_MAP)];
        }
        return vec![
            mask,
            Saved::new("permute indices", &[moe.sent], INDEX, &PERMUTE),
            Saved::new("unpermute indices", &[moe.sent], INDEX, &UNPERMUTE),
        ];
    }
    match x.recipe().moe.dispatcher {
        Dispatcher::AllGather => vec![
            Saved::new("permute indices", &[moe.received], INDEX, &RECEIVED),
            Saved::new("routing map", &[moe.map], 1, &GATHERED_MAP),
            Saved::new("gathered probabilities", &[moe.map], moe.probability, &GATHERED_PROBABILITIES),
        ],
        Dispatcher::AllToAll | Dispatcher::Flex if x.recipe().moe.permute_fusion => {
            // Transformer Engine's fused permutation saves one int32 map in place of sorted indices.
            vec![Saved::new("row map", &[x.s_local, 2 * moe.experts + 1], INDEX / 2, &ROW_MAP)]
        }
        Dispatcher::AllToAll | Dispatcher::Flex => vec![
            Saved::new("sorted routing map", &map, INDEX, &SORTED_MAP),
            Saved::new("permute indices", &[moe.sent], INDEX, &PERMUTE),
        ],
    }
}

fn experts(x: &Symbols<'_>) -> Vec<Saved> {
    let moe = x.moe;
    let inner = [moe.received, moe.ffn];
    let wide = [moe.received, moe.hidden];
    let input = Saved::new("experts fc1 input", &wide, x.input_width, &EXPERT_INPUT).by(FC1);
    let mut out = EXPERTS_FC1.row(x, input, wide, Alive::No, true);
    out.push(
        Saved::new("experts activation input", &[moe.received, x.gate * moe.ffn], x.width, &ACTIVATION)
            .by(ACT),
    );
    if !x.recipe().fusions.bias_activation {
        for name in unfused_steps(x) {
            out.push(Saved::new(name, &inner, x.width, &UNFUSED).by(ACT));
        }
    }
    out.push(Saved::new("experts probabilities", &[moe.received], moe.probability, &PROBABILITIES).by(ACT));
    // `--recompute-modules moe_act` discards the activation's output; its inputs stay, from which backward recomputes
    // it.
    let alive = if x.recomputes(RecomputeModule::MoeActivation) { Alive::Recomputed } else { Alive::No };
    let input = Saved::new("experts fc2 input", &inner, x.input_width, &EXPERT_OUTPUT);
    out.extend(EXPERTS_FC2.row(x, input, inner, alive, true));
    out
}

/// What an unfused activation of experts saves: the activated half and the offset linear half of a gated pair, and
/// the product before it meets the probabilities.
fn unfused_steps(x: &Symbols<'_>) -> &'static [&'static str] {
    if x.model().activation.is_gated() {
        &["experts activated half", "experts offset linear half", "experts activation output"]
    } else {
        &["experts activation output"]
    }
}

fn shared(x: &Symbols<'_>) -> Vec<Saved> {
    let width = x.moe.shared;
    let mut out = Vec::with_capacity(5);
    if width == 0 {
        return out;
    }
    // If recomputed, they only need their input, which the router saves anyway.
    if !x.recomputes(RecomputeModule::SharedExperts) {
        // The router saves what the shared experts read.
        let input = Saved::new("router input", &[x.s_local, x.h], x.width, &INPUT);
        out.extend(SHARED_FC1.column(x, input, [false, true], Alive::Kept));
        out.push(Saved::new("shared activation input", &[x.n, x.gate * width], x.width, &SHARED_ACTIVATION));
        if x.model().activation.is_gated() && !x.recipe().fusions.bias_activation {
            for name in ["shared activated half", "shared offset linear half"] {
                out.push(Saved::new(name, &[x.n, width], x.width, &SHARED_UNFUSED));
            }
        }
        let input = Saved::new("shared fc2 input", &[x.n, width], x.input_width, &SHARED_OUTPUT);
        out.extend(SHARED_FC2.row(x, input, [x.n, width], Alive::No, true));
    }
    if x.model().experts.as_ref().is_some_and(|experts| experts.shared_expert_gate) {
        out.push(Saved::new("shared gate score", &[x.s_local], x.width, &GATE_SCORE));
        out.push(Saved::new("shared output", &[x.s_local, x.h], x.width, &GATED));
    }
    out
}
