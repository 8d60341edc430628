//! torchtune. Keys: its configurations.

use super::row::Row;
use crate::Origin;
use crate::formats::flags::known_model;
use crate::formats::leaves::Leaves;
use crate::named::take_model;
use shardscope_plan::{Field, Software};

/// torchtune's settings file.
pub(in crate::formats) const TORCHTUNE: Row = Row {
    trainer: "torchtune",
    title: "a configuration of torchtune",
    about: "torchtune: model by name, batch, adapters; its layers stop the verdict",
    signs: &["model._component_", "tokenizer._component_"],
    keys: &[
        (&["tokenizer.max_seq_len"], Field::SeqLength),
        (&["batch_size"], Field::MicroBatchSize),
        (&["gradient_accumulation_steps"], Field::NumMicroBatches),
        (&["model.lora_rank"], Field::LoraRank),
        (&["model.lora_alpha"], Field::LoraAlpha),
        (&["model.lora_dropout"], Field::LoraDropout),
    ],
    models: &[],
    software: Software::TorchFsdp,
    lacking: Some("what torchtune's own layers keep for the backward pass"),
    extra: torchtune,
};

/// Models by the name of the function that builds them: `torchtune.models.llama3_1.lora_llama3_1_8b`.
fn torchtune(leaves: &mut Leaves<'_>) {
    let Some(leaf) = leaves.get("model._component_") else { return };
    let mut name = leaf.value.rsplit('.').next().unwrap_or(&leaf.value);
    for (prefix, kind) in [("qlora_", "qlora"), ("lora_", "lora"), ("dora_", "lora")] {
        if let Some(rest) = name.strip_prefix(prefix) {
            leaves.say(Field::TrainType, kind, leaf);
            name = rest;
        }
    }
    let dotted = ["3_1", "3_2", "3_3", "2_5"]
        .iter()
        .fold(name.to_owned(), |name, part| name.replace(part, &part.replace('_', ".")));
    match known_model(&dotted) {
        Some((known, settings)) => {
            let note = [known, ", named as ", &leaf.value].concat();
            for (field, value) in settings {
                leaves.state(field, &value, Origin::Catalog, &note);
            }
        }
        None => take_model(&mut leaves.reading, &dotted, &leaf.path, leaf.span),
    }
    leaves.state(Field::ZeroStage, "3", Origin::Default, "torchtune's distributed recipes shard by FSDP2");
}
