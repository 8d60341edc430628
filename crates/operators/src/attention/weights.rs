//! Weights (`megatron/core/transformer/attention.py`): the fused QKV projection is column-parallel, the output
//! projection row-parallel. With fewer query groups than tensor ranks the fused rows are still split evenly.

use crate::{Account, Created, Symbols, Weight, WeightPart, norm};
use shardscope_plan::{AttentionSoftmax, LinearBias};

pub(crate) fn weights(x: &Symbols<'_>) -> Vec<Weight> {
    let model = x.model();
    let keys = if model.arrangement.whole_keys { 2 * x.groups * x.d } else { 0 };
    let rows = qkv_rows(x) + gate(x, model.num_attention_heads) - keys;
    let part = {
        let keys = if model.arrangement.whole_keys || x.borrows { 0 } else { x.k * x.d };
        WeightPart::JointQueries { keys, values: if x.pair > 1 { keys } else { 0 } }
    };
    let mut out =
        vec![Weight::column("linear_qkv.weight", Account::Attention, [rows, x.h], x.t).as_part(part)];
    let biases = model.linear_bias != LinearBias::None;
    if biases {
        out.push(Weight::split_vector("linear_qkv.bias", Account::Attention, rows, x.t).as_part(part));
    }
    if keys > 0 {
        out.push(Weight::replicated("key_value.weight", Account::Attention, &[keys, x.h]));
        out.extend(biases.then(|| Weight::replicated("key_value.bias", Account::Attention, &[keys])));
    }
    if model.qk_layernorm {
        let [queries, keys] = if model.arrangement.norms_over_heads {
            [model.num_attention_heads * x.d, x.groups * x.d]
        } else {
            [x.d; 2]
        };
        out.extend(norm::of_heads(x, ["q_layernorm.weight", "q_layernorm.bias"], queries));
        if !x.borrows {
            out.extend(norm::of_heads(x, ["k_layernorm.weight", "k_layernorm.bias"], keys));
        }
    }
    out.extend(sinks(x));
    out.extend(projection(x, model.num_attention_heads * x.d));
    out.extend(norm::post(x, ["post_self_attn_layernorm.weight", "post_self_attn_layernorm.bias"]));
    out
}

/// Rows of the unsharded fused projection: queries, keys and values.
fn qkv_rows(x: &Symbols<'_>) -> u64 {
    (x.model().num_attention_heads + x.pair * x.groups) * x.d
}

/// Rows of the gate of `heads` heads that the projection produces along with the queries; 0 without a gate.
pub(crate) fn gate(x: &Symbols<'_>, heads: u64) -> u64 {
    if x.model().mixers.output_gate { heads * x.d } else { 0 }
}

/// One learned softmax sink per query head, if there are any.
pub(crate) fn sinks(x: &Symbols<'_>) -> Option<Weight> {
    let heads = x.model().num_attention_heads;
    (x.model().attention_softmax == AttentionSoftmax::Learnable).then(|| {
        Weight::split_vector("core_attention.softmax_offset", Account::Attention, heads, x.t)
            .created(Created::FirstInAttention)
    })
}

/// The output projection from `width` elements of all heads to the residual stream.
pub(crate) fn projection(x: &Symbols<'_>, width: u64) -> Vec<Weight> {
    let mut out = vec![Weight::row("linear_proj.weight", Account::Attention, [x.h, width], x.t)];
    if x.model().linear_bias == LinearBias::All {
        out.push(Weight::replicated("linear_proj.bias", Account::Attention, &[x.h]));
    }
    out.into_iter().map(|weight| weight.created(Created::FirstInAttention)).collect()
}
