//! Meta's lingua. Keys: `lingua/args.py`.

use super::row::Row;
use crate::Origin;
use crate::formats::leaves::Leaves;
use crate::formats::llama_like::LLAMA_LAYER;
use shardscope_plan::{Field, Software};

/// lingua's settings file.
pub(in crate::formats) const LINGUA: Row = Row {
    trainer: "lingua",
    title: "a configuration of lingua",
    about: "lingua: shape, batch; its layers stop the verdict",
    signs: &[&["distributed.fsdp_type", "model.dim"]],
    keys: &[
        (&["model.n_layers"], Field::NumLayers),
        (&["model.dim"], Field::HiddenSize),
        (&["model.n_heads"], Field::NumAttentionHeads),
        (&["model.vocab_size"], Field::VocabSize),
        (&["data.seq_len"], Field::SeqLength),
        (&["data.batch_size"], Field::MicroBatchSize),
        (&["grad_acc_steps"], Field::NumMicroBatches),
        (&["distributed.tp_size"], Field::TensorModelParallelSize),
    ],
    models: &[],
    software: Software::TorchFsdp,
    lacking: Some("what lingua's own layers keep for the backward pass, compiled"),
    extra: lingua,
};

fn lingua(leaves: &mut Leaves<'_>) {
    let why =
        "lingua's transformer: gated, RMS norms, rotary positions, MLP of 8/3 the width in multiples of 256";
    if let Some(hidden) = leaves.reading.count(Field::HiddenSize) {
        // `lingua/transformer.py:FeedForward`: int(2 / 3 of four times the width), times a factor, up to a multiple.
        let multiple = leaves.whole("model.multiple_of").unwrap_or(256).max(1);
        let width = (hidden.saturating_mul(8) / 3).next_multiple_of(multiple);
        if leaves.text("model.ffn_dim_multiplier").is_none_or(|factor| matches!(factor, "1" | "1.0" | "null"))
        {
            leaves.state(Field::FfnHiddenSize, &width.to_string(), Origin::Derived, why);
        }
    }
    leaves.follow("model.weight_tying", Field::UntieEmbeddingsAndOutputWeights, false);
    leaves.state_all(&LLAMA_LAYER, Origin::Derived, why);
    leaves.take(&["model.head_dim"], Field::KvChannels);
    // Layers stay gathered from forward to backward (`apps/main/transformer.py:build_fsdp_grouping_plan`).
    let stage = if leaves.text("distributed.fsdp_type") == Some("no_shard") { "0" } else { "2" };
    if let Some(leaf) = leaves.get("distributed.fsdp_type") {
        leaves.say(Field::ZeroStage, stage, leaf);
    }
}
