//! Weights (`megatron/core/transformer/multi_latent_attention.py`): the down-projections are replicated on every
//! tensor rank, the up-projections are column-parallel; only the output projection has a bias. The norms of the
//! latents come with `--qk-layernorm`; without q-LoRA it also brings a norm of the residual stream before the query
//! projection.

use super::saved::queries_are_normed;
use crate::{Account, Symbols, Weight, attention, norm};
use shardscope_plan::LatentAttention;

pub(crate) fn weights(x: &Symbols<'_>) -> Vec<Weight> {
    let Some(latent) = x.model().latent else { return Vec::new() };
    let heads = x.model().num_attention_heads;
    let mut out = queries(x, latent);
    let down = latent.kv_lora_rank + latent.qk_pos_emb_head_dim;
    out.push(Weight::replicated("linear_kv_down_proj.weight", Account::Attention, &[down, x.h]).as_linear());
    if x.model().qk_layernorm {
        let names = ["kv_layernorm.weight", "kv_layernorm.bias"];
        out.extend(norm::scale(x, names, Account::Norms, latent.kv_lora_rank));
    }
    let up = heads * (latent.qk_head_dim + latent.v_head_dim);
    out.push(Weight::column("linear_kv_up_proj.weight", Account::Attention, [up, latent.kv_lora_rank], x.t));
    out.extend(attention::sinks(x));
    out.extend(attention::projection(x, heads * latent.v_head_dim));
    out
}

fn queries(x: &Symbols<'_>, latent: LatentAttention) -> Vec<Weight> {
    let rows = x.model().num_attention_heads * latent.query_width();
    let normed = x.model().qk_layernorm;
    let mut out = Vec::new();
    if let Some(rank) = latent.q_lora_rank {
        out.push(
            Weight::replicated("linear_q_down_proj.weight", Account::Attention, &[rank, x.h]).as_linear(),
        );
        if normed {
            out.extend(norm::of_heads(x, ["q_layernorm.weight", "q_layernorm.bias"], rank));
        }
        out.push(Weight::column("linear_q_up_proj.weight", Account::Attention, [rows, rank], x.t));
    } else {
        if queries_are_normed(x) {
            let names = ["linear_q_proj.layer_norm_weight", "linear_q_proj.layer_norm_bias"];
            out.extend(norm::scale(x, names, Account::Attention, x.h));
        }
        out.push(Weight::column("linear_q_proj.weight", Account::Attention, [rows, x.h], x.t));
    }
    out
}
