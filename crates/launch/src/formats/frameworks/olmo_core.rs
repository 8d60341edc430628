//! OLMo-core, whose scripts are Python and save what they come to as `config.json`. Keys: `olmo_core/nn/transformer/config.py`.

use super::row::Row;
use shardscope_plan::{Field, Software};

/// What is not known of it.
pub(crate) const LACKING: &str = "OLMo-core's layers, and what its trainer keeps";

/// The settings that OLMo-core saves.
pub(in crate::formats) const OLMO_CORE: Row = Row {
    trainer: "OLMo-core",
    title: "a configuration of OLMo-core",
    about: "OLMo-core: shape; its layers stop the verdict",
    signs: &[&["train_module.rank_microbatch_size", "model.d_model"]],
    keys: &[
        (&["model.n_layers"], Field::NumLayers),
        (&["model.d_model"], Field::HiddenSize),
        (&["model.vocab_size"], Field::VocabSize),
        (&["dataset.sequence_length", "train_module.max_sequence_length"], Field::SeqLength),
    ],
    models: &[],
    software: Software::TorchFsdp,
    lacking: Some(LACKING),
    extra: |leaves| leaves.pass_below(&["model.", "train_module.", "trainer.", "data_loader.", "dataset."]),
    program: None,
};
