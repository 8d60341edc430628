//! levanter, in JAX. Keys: `levanter/trainer.py`.

use super::row::Row;
use shardscope_plan::{Field, Software};

/// levanter's settings file.
pub(in crate::formats) const LEVANTER: Row = Row {
    trainer: "levanter",
    title: "a configuration of levanter",
    about: "levanter: shape and batch; JAX stops the verdict",
    signs: &[&["trainer.train_batch_size", "model"], &["trainer.train_batch_size", "initialize_from_hf"]],
    keys: &[
        (&["model.num_layers"], Field::NumLayers),
        (&["model.hidden_dim"], Field::HiddenSize),
        (&["model.num_heads"], Field::NumAttentionHeads),
        (&["model.intermediate_dim"], Field::FfnHiddenSize),
        (&["train_seq_len", "model.max_seq_len", "model.seq_len"], Field::SeqLength),
        (&["trainer.train_batch_size"], Field::GlobalBatchSize),
    ],
    models: &["initialize_from_hf"],
    software: Software::TorchFsdp,
    lacking: Some("a trainer in JAX, whose compiler decides what is kept and sent"),
    extra: |_| {},
    program: None,
};
