//! Prime Intellect's prime-rl. Keys: `src/prime_rl/configs`.

use super::row::Row;
use shardscope_plan::{Field, Software};

const KEYS: &[(&[&str], Field)] = &[
    (&["data.seq_len", "trainer.model.seq_len", "model.seq_len", "seq_len"], Field::SeqLength),
    (&["data.micro_batch_size"], Field::MicroBatchSize),
    (&["data.batch_size"], Field::GlobalBatchSize),
    (&["deployment.num_train_gpus"], Field::WorldSize),
    (&["deployment.num_train_nodes", "deployment.num_nodes"], Field::NumNodes),
];
const LACKING: Option<&str> =
    Some("what prime-rl's own modules keep for the backward pass, and its rollouts");

/// prime-rl's settings file of reinforcement learning.
pub(in crate::formats) const PRIME_RL: Row = Row {
    trainer: "prime-rl",
    title: "a configuration of prime-rl",
    about: "prime-rl: model by name, length, machines; its modules stop the verdict",
    signs: &[&["model.name", "orchestrator"]],
    keys: KEYS,
    models: &["model.name"],
    software: Software::TorchFsdp,
    lacking: LACKING,
    extra: |_| {},
    program: None,
};

/// prime-rl's settings file of supervised fine-tuning.
pub(in crate::formats) const PRIME_SFT: Row = Row {
    title: "a configuration of prime-rl's supervised fine-tuning",
    about: "prime-rl's supervised fine-tuning: model by name, batch, length; its modules stop the verdict",
    signs: &[
        &["model.name", "data.name", "optim"],
        &["model.name", "data.type", "max_steps"],
        &["model.name", "data", "ckpt", "max_steps"],
        &["model.name", "max_steps", "optim"],
    ],
    ..PRIME_RL
};
