//! OLMo. Keys: `olmo/config.py`.

use super::row::Row;
use crate::Origin;
use crate::formats::leaves::{Leaf, Leaves};
use shardscope_plan::{Field, Software};

/// OLMo's settings file.
pub(in crate::formats) const OLMO: Row = Row {
    trainer: "OLMo",
    title: "a configuration of OLMo",
    about: "OLMo: shape, batch; its layers stop the verdict",
    signs: &[&["model.d_model", "model.n_heads", "global_train_batch_size"]],
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
    // `mlp_ratio` counts where no width is given; its default is 4.
    let stated = leaves.get("model.mlp_hidden_size").filter(|leaf| leaf.whole().is_some());
    let ratio = leaves.get("model.mlp_ratio");
    let hidden = leaves.reading.count(Field::HiddenSize);
    let of_ratio =
        hidden.zip(ratio.map_or(Some(4), Leaf::whole)).and_then(|(hidden, ratio)| hidden.checked_mul(ratio));
    let width = stated.and_then(Leaf::whole).or(of_ratio);
    let place = stated.or(ratio).or_else(|| leaves.get("model.d_model"));
    if let (Some(width), Some(leaf)) = (width, place) {
        let own = if gated { width / 2 } else { width };
        let note = "OLMo counts both halves of a gated MLP";
        leaves.say_noted(Field::FfnHiddenSize, &own.to_string(), leaf, note);
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
