//! Arithmetic of multi-latent attention. The down-projections are replicated on every tensor rank and run on the
//! rank's own tokens; the up-projections are sharded by heads (`multi_latent_attention.py`).

use crate::shared::{HeadWidths, core_attention, kernel, residual_addition, rotary};
use crate::{Symbols, Work, norm, sampled};
use shardscope_plan::{LatentAttention, RecomputeModule};

const UP: &[RecomputeModule] = &[RecomputeModule::MlaUpProjection];

pub(crate) fn work(x: &Symbols<'_>) -> Vec<Work> {
    let Some(latent) = x.model().latent else { return Vec::new() };
    let mut work = Vec::with_capacity(14);
    queries(x, &latent, &mut work);
    keys_and_values(x, &latent, &mut work);
    let widths = HeadWidths { query: latent.query_width(), value: latent.v_head_dim };
    work.extend(core_attention(x, widths, x.a * (2 * widths.query + widths.value)));
    let (inner, full) = (x.a * latent.v_head_dim, x.model().num_attention_heads * latent.v_head_dim);
    work.push(linear(x, "linear_proj", [x.n, x.h, inner], [x.h, full]));
    work.push(residual_addition(x, "self_attn_bda"));
    sampled::number(x, 1, &mut work);
    work
}

fn queries(x: &Symbols<'_>, latent: &LatentAttention, work: &mut Vec<Work>) {
    let (width, heads) = (latent.query_width(), x.model().num_attention_heads);
    let Some(rank) = latent.q_lora_rank else {
        work.push(linear(x, "linear_q_proj", [x.n, x.a * width, x.h], [heads * width, x.h]));
        return;
    };
    work.push(linear(x, "linear_q_down_proj", [x.s_local, rank, x.h], [rank, x.h]));
    work.push(latent_norm(x, "q_layernorm", rank));
    work.push(linear(x, "linear_q_up_proj", [x.n, x.a * width, rank], [heads * width, rank]));
    Work::within(&mut work[2..], UP);
}

fn keys_and_values(x: &Symbols<'_>, latent: &LatentAttention, work: &mut Vec<Work>) {
    let (rank, rotated) = (latent.kv_lora_rank, latent.qk_pos_emb_head_dim);
    let (width, heads) = (latent.qk_head_dim + latent.v_head_dim, x.model().num_attention_heads);
    work.push(linear(x, "linear_kv_down_proj", [x.s_local, rank + rotated, x.h], [rank + rotated, x.h]));
    work.push(latent_norm(x, "kv_layernorm", rank));
    let before = work.len();
    work.push(linear(x, "linear_kv_up_proj", [x.n, x.a * width, rank], [heads * width, rank]));
    // The rotated part of every query head, and of one key that all heads share.
    work.push(rotary(x, (x.a + 1) * rotated));
    // Rotated and plain parts are concatenated: queries and keys are read and written once.
    let moved = x.bytes(4 * x.n * x.a * latent.query_width());
    work.push(kernel("qk_concat", [moved, moved], [2, 2]));
    Work::within(&mut work[before..], UP);
}

fn latent_norm(x: &Symbols<'_>, name: &'static str, columns: u64) -> Work {
    let elements = x.s_local * columns;
    let one = || kernel(name, [x.bytes(2 * elements), x.bytes(4 * elements)], [1, 2]);
    norm::latent(x, name, columns).unwrap_or_else(one)
}

fn linear(x: &Symbols<'_>, name: &'static str, local: [u64; 3], [n, k]: [u64; 2]) -> Work {
    Work::linear(name, local, [x.full_tokens(), n, k])
}
