//! Messages (`megatron/core/transformer/multi_latent_attention.py`): the down-projections are whole on every
//! rank and send nothing; the latents are gathered in front of the up-projections, with sequence
//! parallelism also the rotated part of the keys.

use crate::anatomy::exchange::{HeadColumns, column, context, row, within};
use crate::anatomy::message::Call;
use crate::anatomy::{Collective, Dimension, Message, Pass, Symbols};
use crate::explain::Formula;
use crate::plan::{LatentAttention, RecomputeModule};

const SOURCE: &str = "Megatron-LM megatron/core/transformer/multi_latent_attention.py";

static GATHER_ROTATED: Call = Call {
    dimension: Dimension::Tensor,
    collective: Collective::AllGather,
    pass: Pass::Forward,
    tensor: "rotated keys",
    formula: Formula {
        expression: "s·b·d_r·B",
        meaning: "The rotated part of the keys is one head for all; every rank needs it for the whole sequence.",
        source: SOURCE,
    },
};

static SCATTER_ROTATED: Call = Call {
    dimension: Dimension::Tensor,
    collective: Collective::ReduceScatter,
    pass: Pass::Backward,
    tensor: "rotated key gradient",
    formula: Formula {
        expression: "s·b·d_r·B",
        meaning: "Its gradient is added up over all heads and cut by sequence.",
        source: SOURCE,
    },
};

pub(in crate::anatomy) fn messages(x: &Symbols<'_>) -> Vec<Message> {
    let Some(latent) = x.model().latent else { return Vec::new() };
    let mut messages = up_projections(x, latent);
    messages.extend(rotated_keys(x, latent));
    messages.extend(context(x, columns(x, latent)));
    messages.extend(row(x, "linear_proj"));
    messages
}

fn columns(x: &Symbols<'_>, latent: LatentAttention) -> HeadColumns {
    let wide = x.a * latent.query_width();
    let narrow = x.a * latent.v_head_dim;
    HeadColumns { query: wide, key: wide, value: narrow, output: narrow }
}

fn up_projections(x: &Symbols<'_>, latent: LatentAttention) -> Vec<Message> {
    let queries = match latent.q_lora_rank {
        Some(rank) => column(x, "linear_q_up_proj", rank),
        None => column(x, "linear_q_proj", x.h),
    };
    let keys = column(x, "linear_kv_up_proj", latent.kv_lora_rank);
    within(queries, &[RecomputeModule::MlaUpProjection])
        .chain(within(keys, &[RecomputeModule::MlaUpProjection]))
        .collect()
}

fn rotated_keys(x: &Symbols<'_>, latent: LatentAttention) -> Vec<Message> {
    if x.t <= 1 || !x.plan.layout().sequence_parallel {
        return Vec::new();
    }
    let shape = [x.s, x.b, latent.qk_pos_emb_head_dim];
    [&GATHER_ROTATED, &SCATTER_ROTATED]
        .map(|call| Message::new(x, call, "linear_kv_down_proj", &shape))
        .to_vec()
}
