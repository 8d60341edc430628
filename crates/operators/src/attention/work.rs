//! Arithmetic of self-attention: projections, rotary embedding, the core, the residual addition.

use crate::shared::{HeadWidths, bias_gradient, core_attention, kernel, residual_addition, rotary};
use crate::{Symbols, Work};
use shardscope_plan::{LinearBias, PositionEmbedding, RecomputeModule};

const ATTENTION: &[RecomputeModule] = &[RecomputeModule::Attention];

pub(crate) fn work(x: &Symbols<'_>) -> Vec<Work> {
    let model = x.model();
    let (tokens, heads, groups) = (x.full_tokens(), model.num_attention_heads, model.num_query_groups);
    let packed = (x.a + 2 * x.k) * x.d;
    let full_packed = (heads + 2 * groups) * x.d + super::gate(x, heads);
    let rows = packed + super::gate(x, x.a);
    let mut work = vec![Work::linear("linear_qkv", [x.n, rows, x.h], [tokens, full_packed, x.h])];
    if model.linear_bias != LinearBias::None {
        work.push(bias_gradient(x, "linear_qkv.bias", packed));
    }
    if model.position_embedding == PositionEmbedding::Rope {
        work.push(rotary(x, (x.a + x.k) * x.d));
    }
    work.extend(core_attention(x, HeadWidths { query: x.d, value: x.d }, packed));
    let (inner, full_inner) = (x.a * x.d, heads * x.d);
    if model.mixers.output_gate {
        // Sigmoid and product: output and gate are read, the result written; backward both gradients.
        let moved = x.n * inner;
        work.push(kernel("output_gate", [x.bytes(3 * moved), x.bytes(5 * moved)], [2, 3]));
    }
    work.push(Work::linear("linear_proj", [x.n, x.h, inner], [tokens, x.h, full_inner]));
    for part in work.iter_mut().filter(|part| part.modules().is_empty()) {
        Work::within(std::slice::from_mut(part), ATTENTION);
    }
    work.push(residual_addition(x, "self_attn_bda"));
    work
}
