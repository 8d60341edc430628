//! Arithmetic of self-attention: projections, rotary embedding, the core, the residual addition.

use super::is_grouped;
use crate::shared::{
    HeadWidths, around_products, bias_gradient, core_attention, kernel, layers, residual_addition, rotary,
};
use crate::{Symbols, Work, as_written, norm, pieces};
use shardscope_plan::{
    AttentionKernel, JointParts, LinearBias, NamedTensor, PositionEmbedding, RecomputeModule,
};

const ATTENTION: &[RecomputeModule] = &[RecomputeModule::Attention];

#[allow(clippy::cast_precision_loss)]
pub(crate) fn work(x: &Symbols<'_>) -> Vec<Work> {
    let model = x.model();
    let (tokens, heads, groups) = (x.full_tokens(), model.num_attention_heads, x.groups);
    let packed = (x.a + x.pair * x.k) * x.d;
    let full_packed = (heads + x.pair * groups) * x.d + super::gate(x, heads);
    let rows = packed + super::gate(x, x.a);
    let arranged = &model.arrangement;
    // Keys that are an earlier layer's are normed and rotated there.
    let own = if x.borrows { 0 } else { x.k };
    let parts = layers(x, 1 + x.pair, arranged.fused_qkv);
    let mut work = if x.crosses {
        // Queries of the decoder's tokens, keys and values of the encoder's.
        let (source, wide, narrow) = (x.keys * x.b, x.a * x.d, x.pair * x.k * x.d);
        vec![
            Work::linear("linear_q", [x.n, wide, x.h], [tokens, heads * x.d, x.h]),
            Work::linears(x.pair, "linear_kv", [source, narrow, x.h], [source, x.pair * groups * x.d, x.h]),
        ]
    } else {
        vec![Work::linears(parts, "linear_qkv", [x.n, rows, x.h], [tokens, full_packed, x.h])]
    };
    work[0].repeat(if x.samples_products() {
        // Of a layer's first three products the keys' is the second.
        (x.k * x.d) as f64 / rows.max(1) as f64
    } else {
        1.0 - kept_columns(x) as f64 / packed.max(1) as f64
    });
    // Gradients of rotated queries and keys are laid out head by head and copied for their products; those of a fused
    // projection are joined.
    let copied = match arranged.joint_parts {
        _ if arranged.tokens_first => [0, 0],
        _ if parts > 1 => [(x.a + own) * x.d, 0],
        JointParts::Split => [0, packed],
        JointParts::Headwise | JointParts::Sliced | JointParts::Selected | JointParts::Indexed => [0, 0],
    };
    if x.in_pieces() {
        work.extend(pieces::joint_parts(x, packed));
    }
    work.extend(around_products(x, "attention_input", parts, copied));
    if model.linear_bias != LinearBias::None {
        work.push(bias_gradient(x, "linear_qkv.bias", packed, parts));
    }
    if model.qk_layernorm {
        work.push(norm::heads(x, (x.a + own) * x.d));
    }
    work.extend(norm::values(x, own * x.d));
    if x.in_pieces() {
        work.extend(pieces::joint_gradient(x));
    }
    if model.position_embedding == PositionEmbedding::Rope {
        work.push(rotary(x, (x.a + own) * x.d));
    }
    work.extend(copies(x, packed));
    if x.in_pieces() && x.recipe().attention_kernel != AttentionKernel::Unfused {
        work.extend(pieces::repeated_groups(x));
        work.extend(pieces::output_copy(x));
    }
    if x.as_written() {
        work.push(as_written::summed(x, "attention_input", 3));
        work.extend(as_written::repeated_groups(x));
    }
    let before = work.len();
    work.extend(core_attention(x, HeadWidths { query: x.d, value: x.d }, packed));
    let named = x.recipe().named;
    if named.has(NamedTensor::Context) {
        work[before..].iter_mut().for_each(|part| part.repeat(0.0));
    }
    let (inner, full_inner) = (x.a * x.d, heads * x.d);
    if model.mixers.output_gate {
        // Sigmoid and product: output and gate are read and the result is written; in backward, both gradients.
        let moved = x.n * inner;
        work.push(kernel("output_gate", [x.bytes(3 * moved), x.bytes(5 * moved)], [2, 3]));
    }
    work.push(Work::linear("linear_proj", [x.n, x.h, inner], [tokens, x.h, full_inner]));
    if let Some(projection) = work.last_mut().filter(|_| named.has(NamedTensor::Output)) {
        projection.repeat(0.0);
    }
    for part in work.iter_mut().filter(|part| part.modules().is_empty()) {
        Work::within(std::slice::from_mut(part), ATTENTION);
    }
    work.extend(norm::behind(x, "post_self_attn_layernorm"));
    work.push(residual_addition(x, "self_attn_bda"));
    work
}

/// Columns of queries, keys and values that a recomputed layer keeps by name.
fn kept_columns(x: &Symbols<'_>) -> u64 {
    let named = x.recipe().named;
    let kept = |tensor, heads: u64| if named.has(tensor) { heads * x.d } else { 0 };
    kept(NamedTensor::Query, x.a) + kept(NamedTensor::Key, x.k) + kept(NamedTensor::Value, x.k)
}

/// Copies between the fused projection and a kernel that takes contiguous queries, keys and values: grouped queries
/// are copied when they are read head by head (`attention.py:get_query_key_value_tensors`), remaining views by the
/// kernel's caller (`dot_product_attention/utils.py:get_qkv_layout`), and in backward the three gradients are joined
/// (`SplitAlongDim.backward`). The unfused core counts its own.
fn copies(x: &Symbols<'_>, packed: u64) -> Option<Work> {
    let recipe = x.recipe();
    let unfused = recipe.attention_kernel == AttentionKernel::Unfused;
    if unfused || !recipe.software.semantics().copies_attention_inputs {
        return None;
    }
    let fresh = x.model().qk_layernorm || x.model().position_embedding == PositionEmbedding::Rope;
    let views = u64::from(!fresh);
    let queries = if is_grouped(x) { x.a } else { views * x.a };
    let copied = (queries + views * x.k + x.k) * x.d;
    let moved = [copied, packed].map(|columns| x.bytes(2 * x.n * columns));
    // Not counted as launches: these calls are part of attention's own, which is how the host time per operator was
    // fitted.
    Some(kernel("attention_inputs", moved, [0, 0]))
}
