//! Arithmetic of an MoE layer: router, permutation, grouped products of the experts, shared experts.
//! Rows are those of a balanced router.

use super::pieces;
use crate::shared::{activation, kernel, layers, residual_addition};
use crate::{Matmul, MatmulKind, Symbols, Work, norm};
use shardscope_plan::{Dispatcher, ExpertKernel, Experts, LinearBias, RecomputeModule};
use shardscope_units::Bytes;

const MOE: &[RecomputeModule] = &[RecomputeModule::Moe];
const MOE_ACTIVATION: &[RecomputeModule] = &[RecomputeModule::Moe, RecomputeModule::MoeActivation];
const SHARED: &[RecomputeModule] = &[RecomputeModule::Moe, RecomputeModule::SharedExperts];

pub(crate) fn work(x: &Symbols<'_>) -> Vec<Work> {
    let Some(experts) = &x.model().experts else { return Vec::new() };
    let mut work = Vec::with_capacity(12);
    if pieces::counts(x) {
        work.extend(norm::of_router(x));
        in_pieces(x, experts, &mut work);
        // Experts return the dtype that they were given, which under autocast is wider than a product's, and so is their sum with a
        // dense MLP's output.
        work.extend(norm::behind_of(x, "post_experts_layernorm", x.width).filter(|_| experts_beside(x)));
        work.extend(norm::behind_of(x, "post_mlp_layernorm", x.width));
        work.push(crate::pieces::addition(x, "mlp_bda", x.width, false));
        work.extend(crate::pieces::layer_scale(x));
        return work;
    }
    router(x, experts, &mut work);
    work.push(permutation(x, experts));
    latent_projections(x, experts, &mut work);
    Work::within(&mut work, MOE);
    grouped(x, experts, &mut work);
    shared(x, experts, &mut work);
    work.push(residual_addition(x, "mlp_bda"));
    work
}

fn experts_beside(x: &Symbols<'_>) -> bool {
    x.model().arrangement.dense_beside_experts
}

/// What of it is done before tokens are dispatched (`moe_layer.py:MoELayer.forward`, "route").
pub(crate) fn routing(x: &Symbols<'_>) -> Vec<Work> {
    let mut work = Vec::new();
    if let Some(experts) = &x.model().experts {
        router(x, experts, &mut work);
        if !x.recipe().overlap.shared_expert {
            shared(x, experts, &mut work);
        }
    }
    work
}

/// The same of plain PyTorch's modules.
fn in_pieces(x: &Symbols<'_>, experts: &Experts, work: &mut Vec<Work>) {
    work.push(router_product(x, experts));
    work.extend(pieces::in_front(x));
    latent_projections(x, experts, work);
    let [first, second] = products(x, experts);
    let [activation, sum] = pieces::behind(x);
    work.extend([first, activation, second, sum]);
    Work::within(work, MOE);
    let (before, mut linears) = (work.len(), 0);
    if let Some(width) = experts.shared_expert_intermediate_size {
        let (first, tokens) = (layers(x, x.gate, x.model().arrangement.fused_gate_up), x.full_tokens());
        let switched = experts.shared_expert_gate;
        linears = first + u64::from(switched);
        let full = [tokens, x.gate * width, x.h];
        let name = "shared_experts.linear_fc1";
        work.push(Work::linears(first, name, [x.n, x.gate * x.moe.shared, x.h], full));
        work.push(crate::pieces::activation(x, "shared_experts.activation", x.n * x.moe.shared));
        let full = [tokens, x.h, width];
        work.push(Work::linear("shared_experts.linear_fc2", [x.n, x.h, x.moe.shared], full));
        if switched {
            work.push(Work::plain_linear("shared_experts.gate", [x.n, 1, x.h], [tokens, 1, x.h]));
        }
        work.push(pieces::shared_sum(x, switched));
    }
    work.push(pieces::inputs(x, linears));
    Work::within(&mut work[before..], SHARED);
}

/// Never in fp8: Megatron's router is a plain product (`router.py:Router.gating`), not a Transformer Engine layer.
fn router_product(x: &Symbols<'_>, experts: &Experts) -> Work {
    let count = experts.num_experts;
    Work::plain_linear("router", [x.s_local, count, x.h], [x.full_tokens(), count, x.h])
}

fn router(x: &Symbols<'_>, experts: &Experts, work: &mut Vec<Work>) {
    let count = experts.num_experts;
    work.push(router_product(x, experts));
    // Scores in fp32: softmax or sigmoid, top-k, auxiliary loss, map of chosen experts.
    let scores = Bytes::new(x.s_local * count * 4 * 6);
    work.push(kernel("router_topk", [scores, scores], [20, 12]));
}

/// Tokens are copied once per chosen expert before the exchange and summed after it; in between, copies are sorted by
/// expert and back if a rank has several experts.
///
/// Fused (`transformer_engine/common/triton/permutation.py`): one kernel reads each token once and writes its copies, its mirror
/// reads them and writes their sum; sorting reads and writes each copy. Backward does the same in the other direction. Unfused
/// (`moe_utils.py:permute`, `unpermute`) an index is gathered and scattered copy by copy, through a tensor in between.
fn permutation(x: &Symbols<'_>, experts: &Experts) -> Work {
    let layout = x.plan.layout();
    let (e, et) = (layout.expert, layout.expert_tensor);
    let (tokens, copies) = (x.s_local, x.s_local * experts.router_topk);
    // The tokens that are copied, their copies, and how often each copy is sorted.
    let (tokens, copies, sorted) = match x.recipe().moe.dispatcher {
        _ if e * et <= 1 => (tokens, copies, 0),
        // Tokens of all ranks; those of the experts here are copied.
        Dispatcher::AllGather => (tokens * e * et, copies * et, 0),
        Dispatcher::AllToAll => (tokens, copies, if experts.num_experts > e { 2 * et } else { 0 }),
        // DeepEP and HybridEP take tokens in place, send each once per rank and sum what comes back (`fused_a2a.py`),
        // so only arriving tokens are copied.
        Dispatcher::Flex => (tokens * x.moe.fan, copies, 0),
    };
    let fused = x.recipe().moe.permute_fusion;
    let moved = if fused { 2 * (tokens + copies + sorted * copies) } else { 4 * copies * (2 + sorted) };
    let kernels = if fused { 2 + sorted.min(2) } else { 2 * (2 + sorted.min(2)) };
    let moved = x.bytes(moved * x.h);
    kernel("permute", [moved, moved], [3 * kernels, 2 * kernels])
}

fn latent_projections(x: &Symbols<'_>, experts: &Experts, work: &mut Vec<Work>) {
    let Some(latent) = experts.latent_size else { return };
    let tokens = x.full_tokens();
    work.push(Work::linear("latent_down_proj", [x.s_local, latent, x.h], [tokens, latent, x.h]));
    work.push(Work::linear("latent_up_proj", [x.s_local, x.h, latent], [tokens, x.h, latent]));
}

/// The experts' two products.
fn products(x: &Symbols<'_>, experts: &Experts) -> [Work; 2] {
    let (count, width) = (experts.num_experts.max(1), experts.ffn_hidden_size);
    let here = here(x, experts);
    // Experts are sharded over ETP, which may differ from TP: their widths never divide by t.
    let inner = inner(x, experts);
    let outer = experts.latent_size.unwrap_or(x.h);
    let rows = per_expert(x, experts);
    let full = x.full_tokens() * experts.router_topk;
    let full_rows = full.div_ceil(count).max(1);
    let share = ratio(full, full_rows * count);
    // One product per copy, with weights copied for it.
    let copied = pieces::counts(x) && x.recipe().transformers.experts == ExpertKernel::Batched;
    let [batch, rows] = if copied { [rows * here, 1] } else { [here, rows] };
    let product = |name, local: [u64; 2], whole: [u64; 2]| {
        Work::Matmul(Matmul {
            name,
            batch,
            local: [rows, local[0], local[1]],
            full_batch: count,
            full: [full_rows, whole[0], whole[1]],
            kind: MatmulKind::Linear,
            share,
            modules: MOE,
            trains: true,
            layers: 1,
            fp32_gradient: false,
            masked: false,
            window: None,
            again: false,
            repeated: 1.0,
        })
    };
    let g = x.gate;
    [
        product("experts.linear_fc1", [g * inner, outer], [g * width, outer]),
        product("experts.linear_fc2", [outer, inner], [outer, width]),
    ]
}

/// Experts of this rank.
fn here(x: &Symbols<'_>, experts: &Experts) -> u64 {
    (experts.num_experts.max(1) / x.plan.layout().expert.max(1)).max(1)
}

/// Width of one expert on this rank.
fn inner(x: &Symbols<'_>, experts: &Experts) -> u64 {
    (experts.ffn_hidden_size / x.plan.layout().expert_tensor.max(1)).max(1)
}

fn grouped(x: &Symbols<'_>, experts: &Experts, work: &mut Vec<Work>) {
    let (here, rows) = (here(x, experts), per_expert(x, experts));
    let [first, second] = products(x, experts);
    let mut activation = activation(x, "experts.activation", rows * here, inner(x, experts));
    Work::within(std::slice::from_mut(&mut activation), MOE_ACTIVATION);
    work.extend([first, activation, second]);
    if x.recipe().moe.grouped_gemm && x.model().linear_bias == LinearBias::All {
        let outer = experts.latent_size.unwrap_or(x.h);
        let mut bias = output_bias(x, rows * here * outer, here);
        Work::within(std::slice::from_mut(&mut bias), MOE);
        work.push(bias);
    }
}

/// The biases of experts' outputs (`experts.py:TEGroupedMLP._apply_bias`), which are weighted by the router like the
/// outputs: each expert's bias times its tokens' probabilities, in fp32 like these, its sum with the outputs, and all
/// experts' sums joined and cast back. Backward casts, weights and sums the gradient for the biases and for the
/// probabilities. These are small PyTorch operations in one loop, four of which cost the host as much as one kernel
/// launched from a module.
fn output_bias(x: &Symbols<'_>, elements: u64, experts: u64) -> Work {
    let (w, wide) = (x.width, 4);
    let forward = wide + (w + 2 * wide) + 2 * wide + (wide + w);
    let backward = 2 * (w + wide) + 2 * (3 * wide) + 2 * w;
    let bytes = [forward, backward].map(|each| Bytes::new(elements * each));
    kernel("experts.output_bias", bytes, [experts / 2 + 2, 6 * experts / 4 + 2])
}

/// Rows of one expert: its even share, or its capacity if inputs are padded to it.
fn per_expert(x: &Symbols<'_>, experts: &Experts) -> u64 {
    let layout = x.plan.layout();
    // Copies that the tokens of all ranks of the expert and expert-tensor groups bring to each expert.
    let brought = x.s_local * experts.router_topk * layout.expert * layout.expert_tensor;
    let even = brought.div_ceil(experts.num_experts.max(1)).max(1);
    let recipe = &x.recipe().moe;
    match recipe.capacity_factor {
        Some(factor) if recipe.pad_to_capacity && factor > 0.0 => scaled(even, factor),
        _ => even,
    }
}

fn shared(x: &Symbols<'_>, experts: &Experts, work: &mut Vec<Work>) {
    let Some(width) = experts.shared_expert_intermediate_size else { return };
    let (inner, g, tokens) = (width / x.t.max(1), x.gate, x.full_tokens());
    let before = work.len();
    let full = [tokens, g * width, x.h];
    work.push(Work::linear("shared_experts.linear_fc1", [x.n, g * inner, x.h], full));
    work.push(activation(x, "shared_experts.activation", x.n, inner));
    work.push(Work::linear("shared_experts.linear_fc2", [x.n, x.h, inner], [tokens, x.h, width]));
    if x.samples_products() {
        // The router's product and grouped ones are repeated whatever their number.
        let [first, second] = crate::sampled::of_mlp(x);
        work[before].repeat(first);
        work[before + 2].repeat(second);
    }
    // The sum with the routed experts' output.
    let sum = x.bytes(3 * x.s_local * x.h);
    work.push(kernel("shared_experts.sum", [sum, Bytes::ZERO], [1, 0]));
    Work::within(&mut work[before..], SHARED);
}

#[allow(clippy::cast_precision_loss)]
fn ratio(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(1) as f64
}

#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn scaled(rows: u64, factor: f64) -> u64 {
    (rows as f64 * factor).ceil() as u64
}
