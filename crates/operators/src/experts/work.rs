//! Arithmetic of an MoE layer: router, permutation, grouped products of the experts, shared experts.
//! Rows are those of a balanced router.

use crate::shared::{activation, kernel, residual_addition};
use crate::{Matmul, MatmulKind, Symbols, Work};
use shardscope_plan::{Dispatcher, Experts, LinearBias, RecomputeModule};
use shardscope_units::Bytes;

const MOE: &[RecomputeModule] = &[RecomputeModule::Moe];
const MOE_ACTIVATION: &[RecomputeModule] = &[RecomputeModule::Moe, RecomputeModule::MoeActivation];
const SHARED: &[RecomputeModule] = &[RecomputeModule::Moe, RecomputeModule::SharedExperts];

pub(crate) fn work(x: &Symbols<'_>) -> Vec<Work> {
    let Some(experts) = &x.model().experts else { return Vec::new() };
    let mut work = Vec::with_capacity(12);
    router(x, experts, &mut work);
    work.push(permutation(x, experts));
    latent_projections(x, experts, &mut work);
    Work::within(&mut work, MOE);
    grouped(x, experts, &mut work);
    shared(x, experts, &mut work);
    work.push(residual_addition(x, "mlp_bda"));
    work
}

fn router(x: &Symbols<'_>, experts: &Experts, work: &mut Vec<Work>) {
    let count = experts.num_experts;
    // Never in fp8: Megatron's router is a plain product (`router.py:Router.gating`), not a Transformer Engine layer.
    work.push(Work::plain_linear("router", [x.s_local, count, x.h], [x.full_tokens(), count, x.h]));
    // Scores in fp32: softmax or sigmoid, top-k, auxiliary loss, map of chosen experts.
    let scores = Bytes::new(x.s_local * count * 4 * 6);
    work.push(kernel("router_topk", [scores, scores], [20, 12]));
}

/// Tokens are copied once per chosen expert before the exchange and added up after it; in between, copies are sorted by expert
/// and back where a rank has several of them.
///
/// Fused (`transformer_engine/common/triton/permutation.py`): one kernel reads each token once and writes its copies, its mirror
/// reads them and writes their sum; sorting reads and writes each copy. Backward does the same in the other direction. Unfused
/// (`moe_utils.py:permute`, `unpermute`) an index is gathered and scattered copy by copy, through a tensor in between.
fn permutation(x: &Symbols<'_>, experts: &Experts) -> Work {
    let layout = x.plan.layout();
    let (e, et) = (layout.expert, layout.expert_tensor);
    let (tokens, copies) = (x.s_local, x.s_local * experts.router_topk);
    // What is copied, its copies, and how often each of these is sorted.
    let (tokens, copies, sorted) = match x.recipe().moe.dispatcher {
        _ if e * et <= 1 => (tokens, copies, 0),
        // Tokens of all ranks; those of the experts here are copied.
        Dispatcher::AllGather => (tokens * e * et, copies * et, 0),
        Dispatcher::AllToAll => (tokens, copies, if experts.num_experts > e { 2 * et } else { 0 }),
        // DeepEP and HybridEP take tokens as they lie, send each once to a rank and add up what comes back
        // (`fused_a2a.py`): what is copied are the tokens that arrive.
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

fn grouped(x: &Symbols<'_>, experts: &Experts, work: &mut Vec<Work>) {
    let layout = x.plan.layout();
    let (count, width) = (experts.num_experts.max(1), experts.ffn_hidden_size);
    let here = (count / layout.expert.max(1)).max(1);
    // Experts are sharded over ETP, which may differ from TP: their widths never divide by t.
    let inner = (width / layout.expert_tensor.max(1)).max(1);
    let outer = experts.latent_size.unwrap_or(x.h);
    // Copies that the tokens of all ranks of the expert and expert-tensor groups bring to each expert.
    let brought = x.s_local * experts.router_topk * layout.expert * layout.expert_tensor;
    let rows = per_expert(x, experts, brought);
    let full = x.full_tokens() * experts.router_topk;
    let full_rows = full.div_ceil(count).max(1);
    let share = ratio(full, full_rows * count);
    let product = |name, local: [u64; 2], whole: [u64; 2]| {
        Work::Matmul(Matmul {
            name,
            batch: here,
            local: [rows, local[0], local[1]],
            full_batch: count,
            full: [full_rows, whole[0], whole[1]],
            kind: MatmulKind::Linear,
            share,
            modules: MOE,
            trains: true,
            layers: 1,
            fp32_gradient: false,
        })
    };
    let (g, last) = (x.gate, work.len() + 3);
    work.push(product("experts.linear_fc1", [g * inner, outer], [g * width, outer]));
    let mut activation = activation(x, "experts.activation", rows * here, inner);
    Work::within(std::slice::from_mut(&mut activation), MOE_ACTIVATION);
    work.push(activation);
    work.push(product("experts.linear_fc2", [outer, inner], [outer, width]));
    if x.recipe().moe.grouped_gemm && x.model().linear_bias == LinearBias::All {
        work.push(output_bias(x, rows * here * outer, here));
        Work::within(&mut work[last..], MOE);
    }
}

/// The biases of experts' outputs (`experts.py:TEGroupedMLP._apply_bias`), which are weighted by the router as the outputs are:
/// each expert's bias times its tokens' probabilities, in fp32 as these are, its sum with the outputs, all experts' sums joined
/// and cast back. Backward casts, weighs and sums the gradient for the biases and for the probabilities. Small operations of
/// PyTorch's own in one loop, four of which cost the host what a kernel of a module does.
fn output_bias(x: &Symbols<'_>, elements: u64, experts: u64) -> Work {
    let (w, wide) = (x.width, 4);
    let forward = wide + (w + 2 * wide) + 2 * wide + (wide + w);
    let backward = 2 * (w + wide) + 2 * (3 * wide) + 2 * w;
    let bytes = [forward, backward].map(|each| Bytes::new(elements * each));
    kernel("experts.output_bias", bytes, [experts / 2 + 2, 6 * experts / 4 + 2])
}

/// Rows of one expert: its even part, or its capacity when inputs are padded to it.
fn per_expert(x: &Symbols<'_>, experts: &Experts, brought: u64) -> u64 {
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
