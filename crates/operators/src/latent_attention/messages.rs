//! Messages (`megatron/core/transformer/multi_latent_attention.py`): the down-projections are replicated on every
//! rank and send nothing; the latents are gathered before the up-projections, with sequence parallelism also the
//! rotated part of the keys.

use crate::context::{ContextCalls, HeadColumns, Sizes, context};
use crate::exchange::{ColumnCalls, FROM_RESIDUAL, column, row, within};
use crate::message::Call;
use crate::{Collective, Dimension, Message, Symbols};
use shardscope_explain::Formula;
use shardscope_plan::{LatentAttention, RecomputeModule};

const SOURCE: &str = "megatron/core/transformer/multi_latent_attention.py";
const UP: &[RecomputeModule] = &[RecomputeModule::MlaUpProjection];

static FROM_QUERY_LATENT: ColumnCalls = ColumnCalls::new("s·b·ql·B");
static FROM_KEY_LATENT: ColumnCalls = ColumnCalls::new("s·b·kl·B");

static CONTEXT: ContextCalls = ContextCalls::new(&Sizes {
    keys_and_values: "s·b·a·(dn+dr+dv)·B",
    query: "s·b·a·(dn+dr)·B",
    key: "s·b·a·(dn+dr)·B",
    value: "s·b·a·dv·B",
    output: "s·b·a·dv·B",
    whole_key: "c·s·b·a·(dn+dr)·B",
    whole_value: "c·s·b·a·dv·B",
});

static GATHER_ROTATED: Call = Call::forward(
    Dimension::Tensor,
    Collective::AllGather,
    "rotated keys",
    Formula::new(
        "s·b·dr·B",
        "One rotated key for all heads; every rank needs it for the whole sequence.",
        SOURCE,
    ),
);
static SCATTER_ROTATED: Call = Call::backward(
    Dimension::Tensor,
    Collective::ReduceScatter,
    "rotated key gradient",
    Formula::new(
        "s·b·dr·B",
        "Its gradient is summed over all heads and scattered along the sequence.",
        SOURCE,
    ),
);

pub(crate) fn messages(x: &Symbols<'_>) -> Vec<Message> {
    let Some(latent) = x.model().latent else { return Vec::new() };
    let queries = match latent.q_lora_rank {
        Some(rank) => column(x, &FROM_QUERY_LATENT, "linear_q_up_proj", rank),
        None => column(x, &FROM_RESIDUAL, "linear_q_proj", x.h),
    };
    let keys = column(x, &FROM_KEY_LATENT, "linear_kv_up_proj", latent.kv_lora_rank);
    let mut messages = queries;
    messages.extend(keys);
    messages = within(messages, UP);
    messages.extend(rotated_keys(x, latent));
    messages.extend(context(x, &CONTEXT, columns(x, latent)));
    messages.extend(row(x, "linear_proj"));
    messages
}

fn columns(x: &Symbols<'_>, latent: LatentAttention) -> HeadColumns {
    let wide = x.a * latent.query_width();
    let narrow = x.a * latent.v_head_dim;
    HeadColumns { query: wide, key: wide, value: narrow, output: narrow }
}

fn rotated_keys(x: &Symbols<'_>, latent: LatentAttention) -> Vec<Message> {
    // The down-projection is replicated on every rank: without sequence parallelism each rank has computed the key of
    // every token itself.
    if x.t <= 1 || !x.plan.layout().sequence_parallel {
        return Vec::new();
    }
    let shape = [x.s, x.b, latent.qk_pos_emb_head_dim];
    Message::each(x, &[&GATHER_ROTATED, &SCATTER_ROTATED], "linear_kv_down_proj", &shape, 1)
}
