//! OLMo-core, whose scripts are Python and save their settings as `config.json`. Keys:
//! `olmo_core/nn/transformer/config.py`, `olmo_core/train/train_module/transformer/config.py` (version 2.6).

mod factories;
mod model;
mod stated;
mod training;

pub(crate) use self::factories::{factory, like};
use self::model::model;
use self::training::training;
use super::row::Row;
use crate::leaves::Leaves;
use crate::names;
use crate::{Effect, NotModelled, Origin};
use shardscope_plan::{Field, Software};

/// What is unknown about a program that imports OLMo-core and states no configuration.
pub const LACKING: &str = "OLMo-core's layers, and what its trainer keeps";

/// The settings that OLMo-core saves.
pub(crate) const OLMO_CORE: Row = Row {
    trainer: "OLMo-core",
    title: "a configuration of OLMo-core",
    about: "OLMo-core: shape, norms, windows, batch in tokens, compiler, checkpointing, FSDP2 and HSDP; also its scripts in Python, \
            whose functions are followed",
    signs: &[&["train_module.rank_microbatch_size", "model.d_model"]],
    keys: &[
        (&["model.n_layers"], Field::NumLayers),
        (&["model.d_model"], Field::HiddenSize),
        (&["model.vocab_size"], Field::PaddedVocabSize),
        (&["dataset.sequence_length", "train_module.max_sequence_length"], Field::SeqLength),
        (&["launch.num_nodes"], Field::NumNodes),
        (&["launch.num_gpus"], Field::GpusPerNode),
    ],
    models: &[],
    software: Software::OlmoCore,
    lacking: None,
    extra: |leaves| {
        computed(leaves);
        model(leaves);
        if leaves.has("launch.num_nodes") {
            leaves.state(Field::GpusPerNode, "8", Origin::Default, "of a job on Beaker (launch/beaker.py)");
        }
        training(leaves);
        leaves.pass_everywhere("_CLASS_");
        leaves.pass_below(&names::words("olmo-core").collect::<Vec<_>>());
    },
    program: None,
};

/// Settings that the user may be asked for if a script computes them.
const ASKED: &[&str] = &[
    "model.n_layers",
    "model.d_model",
    "model.vocab_size",
    "dataset.sequence_length",
    "train_module.max_sequence_length",
    "train_module.rank_microbatch_size",
    "data_loader.global_batch_size",
    "launch.num_nodes",
    "launch.num_gpus",
];

/// A computed value may be anything, so it stops the verdict unless it changes no figure or the user is asked for it.
fn computed(leaves: &mut Leaves<'_>) {
    let idle: Vec<&str> = names::words("olmo-core").collect();
    for leaf in leaves.all().iter().filter(|leaf| leaf.hole.is_some()) {
        let path = leaf.path.as_str();
        let documents = path.ends_with("generate_doc_lengths");
        let passed = ASKED.contains(&path)
            || path.starts_with("train_module.optim.")
            || idle.iter().any(|known| path.starts_with(known));
        if documents || !passed {
            let item = NotModelled::new(path, "", Effect::Memory, "a setting that the script computes")
                .at_some(leaf.span);
            leaves.reading.not_modelled.push(item);
        }
    }
}
