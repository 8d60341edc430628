//! litgpt. Keys: its configurations.

use super::row::Row;
use shardscope_plan::{Field, Software};

/// litgpt's settings file.
pub(in crate::formats) const LITGPT: Row = Row {
    trainer: "litgpt",
    title: "a configuration of litgpt",
    about: "litgpt: model by name, batch, machines; its layers stop the verdict",
    signs: &["train.global_batch_size", "devices"],
    keys: &[
        (&["train.max_seq_length"], Field::SeqLength),
        (&["train.global_batch_size"], Field::GlobalBatchSize),
        (&["train.micro_batch_size"], Field::MicroBatchSize),
        (&["devices"], Field::GpusPerNode),
        (&["num_nodes"], Field::NumNodes),
        (&["lora_r"], Field::LoraRank),
        (&["lora_alpha"], Field::LoraAlpha),
        (&["lora_dropout"], Field::LoraDropout),
    ],
    models: &["model_name", "checkpoint_dir"],
    software: Software::TorchFsdp,
    lacking: Some("what litgpt's own layers keep for the backward pass"),
    extra: |_| {},
};
