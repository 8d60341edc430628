//! levanter, in JAX. Keys and defaults: `src/levanter/trainer.py`, `src/levanter/models/{gpt2,llama,mistral}.py`.

mod checkpoint;
mod compiled;

use super::jax::{self, Lacking};
use super::row::{Row, WATCH_TARGETS};
use crate::leaves::{Leaf, Leaves};
use crate::llama_like::LLAMA_LAYER;
use crate::{Effect, NotModelled, Origin};
use shardscope_plan::{Field, Software};

/// levanter's settings file.
pub(crate) const LEVANTER: Row = Row {
    trainer: "levanter",
    title: "a configuration of levanter",
    about: "levanter: GPT-2 and Llama layers, batch, rematerialization; steps unlike those recorded from XLA are not modelled",
    signs: &[
        &["trainer.train_batch_size", "model"],
        &["trainer.train_batch_size", "initialize_from_hf"],
        &["trainer.mp", "model.type"],
    ],
    keys: &[
        (&["model.num_layers"], Field::NumLayers),
        (&["model.hidden_dim"], Field::HiddenSize),
        (&["model.num_heads"], Field::NumAttentionHeads),
        (&["model.intermediate_dim"], Field::FfnHiddenSize),
        (&["model.head_dim"], Field::KvChannels),
        (&["train_seq_len", "model.max_seq_len", "model.seq_len", "max_seq_len"], Field::SeqLength),
        (&["trainer.train_batch_size"], Field::GlobalBatchSize),
        (&["trainer.num_train_steps"], Field::TrainIters),
        (&["trainer.model_axis_size"], Field::TensorModelParallelSize),
        (&["data.tokenizer", "tokenizer"], Field::TokenizerModel),
    ],
    models: &["initialize_from_hf"],
    software: Software::TorchFsdp,
    lacking: None,
    extra: levanter,
    program: None,
};

/// Defaults of each type of model: length, width, layers, heads, inner width, groups.
const DEFAULTS: [(&str, [&str; 6]); 4] = [
    ("gpt2", ["1024", "768", "12", "12", "", ""]),
    ("llama", ["2048", "4096", "32", "32", "11008", "32"]),
    ("qwen", ["2048", "4096", "32", "32", "11008", "32"]),
    ("mistral", ["8192", "4096", "32", "32", "14336", "8"]),
];
const WHOSE: &str = "default of levanter";

fn levanter(leaves: &mut Leaves<'_>) {
    let replaced = checkpoint::replaces(leaves, WHOSE);
    checkpoint::refused(leaves);
    let kind = leaves.text("model.type").unwrap_or("");
    let known = DEFAULTS.iter().find(|(name, _)| *name == kind);
    if replaced && (checkpoint::is_of_sft(leaves) || matches!(kind, "" | "llama" | "mistral")) {
        // The checkpoint's configuration says what its layers are; the rules of a plan refuse all but Llama's.
    } else if let Some((_, [length, width, layers, heads, inner, groups])) = known.filter(|_| !replaced) {
        let sizes = [
            (Field::SeqLength, *length),
            (Field::HiddenSize, *width),
            (Field::NumLayers, *layers),
            (Field::NumAttentionHeads, *heads),
        ];
        leaves.state_all(&sizes, Origin::Default, WHOSE);
        if !inner.is_empty() {
            leaves.state(Field::FfnHiddenSize, inner, Origin::Default, WHOSE);
            if !leaves.has("model.num_kv_heads")
                && leaves.reading.value(Field::NumAttentionHeads) != Some(*groups)
            {
                leaves.state(Field::GroupQueryAttention, "true", Origin::Default, WHOSE);
                leaves.state(Field::NumQueryGroups, groups, Origin::Default, WHOSE);
            }
        }
        layer(leaves, kind);
    } else if let Some(leaf) = leaves.get("model.type") {
        let what = "this levanter model type";
        let item = NotModelled::new(&leaf.path, &leaf.value, Effect::Model, what).at_some(leaf.span);
        leaves.reading.not_modelled.push(item);
    }
    leaves.state(Field::GlobalBatchSize, "512", Origin::Default, WHOSE);
    batch(leaves);
    evaluation(leaves);
    if replaced {
        jax::recompute_by_default(leaves, WHOSE);
    } else {
        remat(leaves);
    }
    // Weights are fp32 and sharded over the axis `embed`; computation is in fp32, too,
    // unless the policy says otherwise.
    match leaves.get("trainer.mp") {
        Some(leaf) if leaf.value.contains("c=") => {
            leaves.switch(
                Field::Bf16,
                leaf.value.contains("c=bf") || leaf.value.contains("c=bfloat16"),
                leaf,
            );
        }
        Some(leaf) => leaves.switch(Field::Bf16, leaf.value.contains("bf"), leaf),
        None => leaves.state(Field::Bf16, "false", Origin::Default, WHOSE),
    }
    leaves.state(Field::ZeroStage, "3", Origin::Default, "levanter shards over the axis embed");
    leaves.state(Field::PadVocabSize, "false", Origin::Default, "levanter pads no vocabulary on one rank");
    if let Some(leaf) = leaves.get("optimizer.type").filter(|leaf| leaf.value != "adam") {
        leaves.reading.keep(&|found| found.field != Field::Optimizer);
        let what = "the states of this levanter optimizer";
        let item = NotModelled::new(&leaf.path, &leaf.value, Effect::Memory, what).at_some(leaf.span);
        leaves.reading.not_modelled.push(item);
    }
    compiled::options(leaves);
    leaves.pass_words("levanter");
    let beside = compiled::beside(leaves);
    let unlike = compiled::unlike(leaves, replaced);
    if !beside && unlike.is_empty() {
        leaves.state(Field::AttentionKernel, "flash", Origin::Default, WHOSE);
        leaves.state(Field::GradReduceInBf16, "true", Origin::Derived, jax::GRADIENTS);
        leaves.reading.software = Some((Software::Levanter, LEVANTER.title.to_owned()));
        watched(leaves);
    } else {
        jax::stop(leaves, "levanter", Lacking { policy: false, tpu: true }, &unlike);
    }
}

/// What norms are taken of and how, as in the recorded steps, where the file says so.
const WATCHED: [(&str, &[&str]); 4] = [
    ("trainer.watch.include_norms", &["true"]),
    ("trainer.watch.include_per_parameter_norms", &["true"]),
    ("trainer.watch.include_histograms", &["false"]),
    ("trainer.watch.split_scan_layers", &["true"]),
];

/// By default every tenth step, the first one too, is another program, which also takes norms of gradients and weights
/// (`trainer.py:train_step`, `callbacks/watch.py`): the output layer's weight gradient comes after the layers
/// (`tests/data/levanter/steps.jsonl`).
fn watched(leaves: &mut Leaves<'_>) {
    const PATH: &str = "trainer.watch.interval";
    let targets: Vec<&Leaf> =
        leaves.all().iter().filter(|leaf| leaf.path.starts_with(WATCH_TARGETS)).collect();
    // `WatchConfig.is_enabled`.
    let norms = leaves.flag("trainer.watch.include_norms") == Some(false)
        && leaves.flag("trainer.watch.include_histograms") != Some(true)
        && leaves.get("trainer.watch.include_histograms").is_none_or(|leaf| leaf.hole.is_none());
    let none = targets.iter().any(|leaf| leaf.path == WATCH_TARGETS && leaf.value == "[]");
    if leaves.whole(PATH) == Some(0) || norms || none {
        return leaves.pass_below(&["trainer.watch"]);
    }
    let mut unlike = jax::unlike(leaves, &WATCHED);
    let marks = ['[', ']', ',', ' ', '"', '\''];
    let mut names: Vec<&str> =
        targets.iter().flat_map(|leaf| leaf.value.split(marks)).filter(|name| !name.is_empty()).collect();
    names.sort_unstable();
    if names == ["grads", "params"] {
        targets.iter().for_each(|leaf| leaf.used.set(true));
    } else if !names.is_empty() {
        unlike.extend(targets.iter().map(|leaf| format!("{} {}", leaf.path, leaf.value)));
    }
    if unlike.is_empty() {
        return leaves.state(Field::WatchedNorms, "true", Origin::Default, WHOSE);
    }
    let what =
        format!("steps in which levanter watches tensors unlike the recorded ones: {}", unlike.join(", "));
    leaves.reading.not_modelled.push(NotModelled::new(PATH, "", Effect::Memory, &what));
    leaves.pass_below(&["trainer.watch"]);
}

fn layer(leaves: &mut Leaves<'_>, kind: &str) {
    let why = "the code of levanter's model";
    if kind == "gpt2" {
        let ratio = leaves.whole("model.mlp_scale").unwrap_or(4);
        let inner = leaves.reading.count(Field::HiddenSize).and_then(|width| width.checked_mul(ratio));
        if let Some(inner) = inner {
            leaves.state(Field::FfnHiddenSize, &inner.to_string(), Origin::Derived, why);
        }
        leaves.follow("model.use_bias", Field::AddBiasLinear, true);
        let gpt2 = [(Field::HiddenDropout, "0"), (Field::AttentionDropout, "0")];
        leaves.state_all(&gpt2, Origin::Default, WHOSE);
        return;
    }
    leaves.follow("model.use_bias", Field::AddBiasLinear, true);
    leaves.follow("model.tie_word_embeddings", Field::UntieEmbeddingsAndOutputWeights, false);
    leaves.state_all(&LLAMA_LAYER, Origin::Derived, why);
    if kind == "qwen" {
        leaves.state(Field::AddQkvBias, "true", Origin::Derived, why);
    }
    for path in ["model.hybrid_norm", "model.input_embedding_norm"] {
        if let Some(leaf) = leaves.yes(path) {
            let what = "levanter norms other than Llama's";
            let item = NotModelled::new(path, "true", Effect::Model, what).at_some(leaf.span);
            leaves.reading.not_modelled.push(item);
        }
    }
}

/// `per_device_parallelism`: -1, the default, means a device's whole share at once.
fn batch(leaves: &mut Leaves<'_>) {
    match leaves.get("trainer.per_device_parallelism") {
        Some(leaf) if leaf.whole().is_some_and(|count| count > 0) => {
            leaves.say(Field::MicroBatchSize, &leaf.value, leaf);
        }
        Some(leaf) => {
            leaves.say_noted(Field::NumMicroBatches, "1", leaf, "-1: all samples of a device at once")
        }
        None => leaves.state(Field::NumMicroBatches, "1", Origin::Default, WHOSE),
    }
}

/// Batches between steps that have no backward pass (`trainer.py:per_device_eval_parallelism`): -1, the default, means as many
/// samples as in training.
fn evaluation(leaves: &mut Leaves<'_>) {
    let evaluation = leaves.get("trainer.per_device_eval_parallelism");
    if let Some(leaf) = evaluation.filter(|leaf| leaf.whole().is_some_and(|count| count > 0)) {
        leaves.say(Field::EvaluationBatchSize, &leaf.value, leaf);
    }
}

fn remat(leaves: &mut Leaves<'_>) {
    let path = "model.gradient_checkpointing";
    match leaves.get(path) {
        Some(leaf) if leaf.flag() == Some(false) => {}
        Some(leaf) if leaf.flag() == Some(true) || matches!(leaf.value.as_str(), "full" | "recompute") => {
            leaves.recompute_all(leaf);
            leaves.say(Field::RecomputeNumLayers, "1", leaf);
        }
        Some(leaf) => {
            let what = "this levanter checkpoint policy";
            let item = NotModelled::new(path, &leaf.value, Effect::Memory, what).at_some(leaf.span);
            leaves.reading.not_modelled.push(item);
        }
        None => jax::recompute_by_default(leaves, WHOSE),
    }
}
