//! OLMo. Keys: `olmo/config.py`.

use super::row::Row;
use crate::Origin;
use crate::formats::leaves::Leaves;
use shardscope_plan::{Field, Software};

/// OLMo's settings file.
pub(in crate::formats) const OLMO: Row = Row {
    trainer: "OLMo",
    title: "a configuration of OLMo",
    about: "OLMo: shape, batch; its layers stop the verdict",
    signs: &["model.d_model", "model.mlp_hidden_size", "global_train_batch_size"],
    keys: &[
        (&["model.n_layers"], Field::NumLayers),
        (&["model.d_model"], Field::HiddenSize),
        (&["model.n_heads"], Field::NumAttentionHeads),
        (&["model.vocab_size"], Field::VocabSize),
        (&["model.embedding_size"], Field::PaddedVocabSize),
        (&["model.max_sequence_length"], Field::SeqLength),
        (&["global_train_batch_size"], Field::GlobalBatchSize),
        (&["device_train_microbatch_size"], Field::MicroBatchSize),
    ],
    models: &[],
    software: Software::TorchFsdp,
    lacking: Some("what OLMo's own layers keep for the backward pass, and its norms"),
    extra: olmo,
};

/// OLMo counts both halves of a gated MLP (`olmo/config.py`, ModelConfig).
fn olmo(leaves: &mut Leaves<'_>) {
    let gated = leaves.text("model.activation_type") == Some("swiglu");
    if let Some(leaf) = leaves.get("model.mlp_hidden_size")
        && let Some(width) = leaf.whole()
    {
        let own = if gated { width / 2 } else { width };
        leaves.say_noted(
            Field::FfnHiddenSize,
            &own.to_string(),
            leaf,
            "OLMo counts both halves of a gated MLP",
        );
        if gated {
            leaves.switch(Field::Swiglu, true, leaf);
        }
    }
    leaves.follow("model.weight_tying", Field::UntieEmbeddingsAndOutputWeights, false);
    leaves.follow("model.include_bias", Field::AddBiasLinear, true);
    if let Some(leaf) = leaves.yes("model.rope") {
        leaves.say(Field::PositionEmbeddingType, "rope", leaf);
    }
    if let Some(leaf) = leaves.get("model.layer_norm_type") {
        leaves.say(Field::Normalization, if leaf.value == "rms" { "RMSNorm" } else { "LayerNorm" }, leaf);
    }
    leaves.state_all(
        &[(Field::ZeroStage, "3"), (Field::HiddenDropout, "0"), (Field::AttentionDropout, "0")],
        Origin::Default,
        "OLMo's FSDP",
    );
}
