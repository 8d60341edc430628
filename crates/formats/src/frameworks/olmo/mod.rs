//! OLMo's own trainer (allenai/OLMo). Keys: `olmo/config.py`.

mod model;
mod stated;
mod training;

use self::model::{attention, mlp, norms, shape};
use self::stated::DEFAULT;
use self::training::{checkpointing, compiled, engine, loss, rest};
use super::row::Row;
use crate::Origin;
use crate::leaves::Leaves;
use crate::names;
use shardscope_plan::{Field, Software};

/// OLMo's settings file.
pub(crate) const OLMO: Row = Row {
    trainer: "OLMo",
    title: "a configuration of OLMo",
    about: "OLMo: shape, norms, batch, loss, checkpointing, FSDP and its units",
    signs: &[&["model.d_model", "model.n_heads", "global_train_batch_size"]],
    keys: &[
        (&["model.n_layers"], Field::NumLayers),
        (&["model.d_model"], Field::HiddenSize),
        (&["model.n_heads"], Field::NumAttentionHeads),
        (&["model.vocab_size"], Field::VocabSize),
        (&["model.max_sequence_length"], Field::SeqLength),
        (&["global_train_batch_size"], Field::GlobalBatchSize),
        (&["device_train_microbatch_size"], Field::MicroBatchSize),
    ],
    models: &[],
    software: Software::Olmo,
    lacking: None,
    extra: olmo,
    program: Some(("scripts/train.py", WORDS)),
};

/// Key prefixes that its own commands override (`scripts/augusta`, `scripts/beaker`).
const WORDS: &[&str] = &[
    "fsdp.",
    "compile.",
    "model.",
    "optimizer.",
    "data.",
    "device_",
    "global_train_batch_size",
    "activation_checkpointing",
    "fused_loss",
    "softmax_auxiliary_loss",
    "distributed_strategy",
    "precision",
    "max_duration",
];

/// The defaults in `olmo/config.py`.
const DEFAULTS: &[(Field, &str)] = &[
    (Field::NumLayers, "12"),
    (Field::VocabSize, "50257"),
    (Field::SeqLength, "1024"),
    (Field::MicroBatchSize, "16"),
];

fn olmo(leaves: &mut Leaves<'_>) {
    shape(leaves);
    let mut variants: Vec<&str> = Vec::with_capacity(4);
    norms(leaves, &mut variants);
    mlp(leaves, &mut variants);
    attention(leaves, &mut variants);
    if let Some(leaf) = leaves.get("model.d_model").filter(|_| !variants.is_empty()) {
        leaves.say(Field::ModuleVariants, &variants.join(" "), leaf);
    }
    engine(leaves);
    compiled(leaves, &variants);
    checkpointing(leaves);
    loss(leaves);
    rest(leaves);
    leaves.state_all(DEFAULTS, Origin::Default, DEFAULT);
    leaves.pass_below(&names::words("olmo").collect::<Vec<_>>());
}
