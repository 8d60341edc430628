//! Arithmetic of an MoE layer: router, permutation, grouped products of the experts, shared experts.
//! Rows are those of a balanced router.

use crate::shared::{activation, kernel, residual_addition};
use crate::{Matmul, MatmulKind, Symbols, Work};
use shardscope_plan::{Dispatcher, Experts, RecomputeModule};
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
    work.push(Work::plain_linear("router", [x.s_local, count, x.h], [x.full_tokens(), count, x.h]));
    // Scores in fp32: softmax or sigmoid, top-k, auxiliary loss, map of chosen experts.
    let scores = Bytes::new(x.s_local * count * 4 * 6);
    work.push(kernel("router_topk", [scores, scores], [20, 12]));
}

/// Tokens are copied once per chosen expert before the exchange, sorted by expert after it, and back
/// again: each copy is read and written, forward and backward. DeepEP and HybridEP take tokens as they lie and add up what comes
/// back: only the sorting by expert is left (`fused_a2a.py`).
fn permutation(x: &Symbols<'_>, experts: &Experts) -> Work {
    let copies = x.s_local * experts.router_topk * x.h;
    let alone = x.plan.layout().expert <= 1 || x.recipe().moe.dispatcher == Dispatcher::Flex;
    let sorts = if alone { 2 } else { 4 };
    let passes = if x.recipe().moe.permute_fusion { 1 } else { 2 };
    let moved = x.bytes(2 * copies * sorts * passes);
    kernel("permute", [moved, moved], [3 * sorts * passes, 2 * sorts * passes])
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
        })
    };
    let g = x.gate;
    work.push(product("experts.linear_fc1", [g * inner, outer], [g * width, outer]));
    let mut activation = activation(x, "experts.activation", rows * here, inner);
    Work::within(std::slice::from_mut(&mut activation), MOE_ACTIVATION);
    work.push(activation);
    work.push(product("experts.linear_fc2", [outer, inner], [outer, width]));
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
