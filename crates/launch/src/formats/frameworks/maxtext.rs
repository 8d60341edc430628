//! MaxText, in JAX. Keys: `base.yml`.

use super::row::Row;
use shardscope_plan::{Field, Software};

/// MaxText's settings file.
pub(in crate::formats) const MAXTEXT: Row = Row {
    trainer: "MaxText",
    title: "a configuration of MaxText",
    about: "MaxText: shape and batch; JAX stops the verdict",
    // Files of a model alone (`configs/models/`), and those that build on `base.yml`.
    signs: &[
        &["per_device_batch_size", "max_target_length"],
        &["base_emb_dim"],
        &["base_config"],
        &["mesh_axes", "logical_axis_rules"],
    ],
    keys: &[
        (&["base_num_decoder_layers"], Field::NumLayers),
        (&["base_emb_dim"], Field::HiddenSize),
        (&["base_num_query_heads"], Field::NumAttentionHeads),
        (&["base_mlp_dim"], Field::FfnHiddenSize),
        (&["max_target_length"], Field::SeqLength),
        (&["per_device_batch_size"], Field::MicroBatchSize),
        (&["ici_tensor_parallelism"], Field::TensorModelParallelSize),
        (&["vocab_size"], Field::VocabSize),
    ],
    models: &["model_name"],
    software: Software::TorchFsdp,
    lacking: Some("a trainer in JAX, whose compiler decides what is kept and sent"),
    extra: |_| {},
    program: None,
};
