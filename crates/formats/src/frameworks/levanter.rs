//! levanter, in JAX. Keys and defaults: `src/levanter/trainer.py`, `src/levanter/models/{gpt2,llama,mistral}.py`.

use super::jax::{self, Lacking};
use super::row::{Row, WATCH_TARGETS};
use crate::leaves::{Leaf, Leaves};
use crate::llama_like::LLAMA_LAYER;
use crate::{Effect, NotModelled, Origin};
use shardscope_plan::limits::{COMPILED_LANES, COMPILED_WIDTH};
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
    let kind = leaves.text("model.type").unwrap_or("");
    let known = DEFAULTS.iter().find(|(name, _)| *name == kind);
    if let Some((_, [length, width, layers, heads, inner, groups])) = known {
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
    remat(leaves);
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
    of_checkpoint(leaves);
    options(leaves);
    leaves.pass_words("levanter");
    let beside = beside(leaves);
    let unlike = unlike(leaves);
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

/// Keys that change the compiled step, and the values that were compiled.
const RECORDED: [(&str, &[&str]); 20] = [
    ("model.type", &["llama"]),
    // Whether or not the policy names the carry: a scan's inputs are kept.
    ("model.gradient_checkpointing", &["true", "full", "recompute"]),
    ("model.scan_layers", &["true"]),
    ("model.use_bias", &["false"]),
    ("model.use_layer_norm_weight", &["true"]),
    ("model.hybrid_norm", &["false"]),
    ("model.input_embedding_norm", &["false"]),
    ("model.tie_word_embeddings", &["false"]),
    ("model.activation_function", &["silu"]),
    ("model.upcast_attn", &["false"]),
    ("model.attn_backend", &["default", "splash"]),
    ("model.use_flash_attention", &["true"]),
    ("optimizer.type", &["adam"]),
    ("trainer.fsdp_axis", &["embed"]),
    ("trainer.batch_axis", &["batch"]),
    ("trainer.model_axis_size", &["1"]),
    ("trainer.replica_ici_axis_size", &["1"]),
    ("trainer.replica_dcn_axis_size", &["1"]),
    ("trainer.jax_config.jax_threefry_partitionable", &["true"]),
    ("trainer.jax_config.jax_softmax_custom_jvp", &["true"]),
];
/// Keys that change it wherever they or a key below them have a value, and what they stand for. The weight of the normalizer's
/// term adds nothing at 0, its default (`models/loss.py`).
const ABSENT: [(&str, &str); 6] = [
    ("model.cross_entropy_block_size", "levanter's loss in blocks of the vocabulary"),
    ("trainer.quantization", "levanter's quantized products"),
    ("trainer.model_averaging", "levanter's average of weights, another copy of all of them"),
    ("trainer.axis_resources", "levanter's own mapping of axes to devices"),
    ("trainer.parameter_axis_resources", "levanter's own mapping of axes of weights to devices"),
    (Z_LOSS, "levanter's loss with a term of its normalizer"),
];
const Z_LOSS: &str = "z_loss_weight";
/// Options of Adam that set the learning rate's course or a factor of the update, or that say which weights decay
/// (`optim/config.py:OptimizerConfig`, `AdamConfig`): not a tensor more or less.
const HARMLESS: [&str; 17] = [
    "type",
    "learning_rate",
    "weight_decay",
    "min_lr_ratio",
    "warmup",
    "decay",
    "rewarmup",
    "cooldown",
    "cycle_length",
    "cycles",
    "lr_schedule",
    "haps",
    "weight_decay_modules",
    "default_weight_decay_mask",
    "beta1",
    "beta2",
    "epsilon",
];
/// Options that are off by default, as in the recorded steps.
const OFF: [&str; 3] = ["nesterov", "skip_bad_steps", "adamc_weight_decay"];

/// Keys that only `main/sft.py` and `main/sft_mixture.py` take.
const OF_SFT: [&str; 14] = [
    "model_name_or_path",
    "max_seq_len",
    "dataset_type",
    "messages_field",
    "input_role",
    "output_role",
    "chat_train_urls",
    "reinit_tokens",
    "reinit_lm_head",
    "reinit_embeddings",
    "supervised_data",
    "mixture_weights",
    "mixture_block_size",
    "stop_strategy",
];

/// With `use_hf_model_config`, `main/train_lm.py` replaces the model of the file by the checkpoint's, with levanter's
/// defaults for all that the checkpoint does not say; `main/sft.py` and `sft_mixture.py` do so whenever they start from one.
fn of_checkpoint(leaves: &mut Leaves<'_>) {
    // Sources and weights are groups of keys.
    let of_sft = leaves.all().iter().any(|leaf| {
        let top = leaf.path.split('.').next().unwrap_or_default();
        OF_SFT.contains(&top)
    });
    let path = if of_sft { "initialize_from_hf" } else { "use_hf_model_config" };
    let Some(leaf) = leaves.get(path).filter(|leaf| leaf.flag() != Some(false)) else {
        return;
    };
    leaves.lack(
        leaf,
        Effect::Model,
        "the checkpoint's configuration, which replaces the whole model written here",
    );
}

/// Any option of Adam stops that was not in the recorded steps and may change them. Other optimizers stop by their type.
fn options(leaves: &mut Leaves<'_>) {
    let is_adam = leaves.text("optimizer.type").is_none_or(|name| name == "adam");
    for leaf in leaves.all() {
        let Some(option) = leaf.path.strip_prefix("optimizer.") else { continue };
        leaf.used.set(true);
        let is_recorded = match option {
            // The recorded steps clip; without, no update waits for the norm of all gradients.
            "max_grad_norm" => leaf.value.parse::<f64>().is_ok_and(|norm| norm.is_finite() && norm > 0.0),
            _ if HARMLESS.contains(&option) || option.starts_with("lr_schedule.") => true,
            _ if OFF.contains(&option) => leaf.value.is_empty() || leaf.flag() == Some(false),
            _ => leaf.value.is_empty() && !option.contains('.'),
        };
        if is_adam && !is_recorded {
            leaves.lack(leaf, Effect::Memory, "levanter's steps with this option of the optimizer");
        }
    }
}

/// Whether keys stand in the file that no recorded step had; each stops.
fn beside(leaves: &mut Leaves<'_>) -> bool {
    let mut any = false;
    for (path, what) in ABSENT {
        let is_of = |leaf: &&Leaf| match leaf.path.strip_prefix(path) {
            Some("") => !leaf.value.is_empty() && (path != Z_LOSS || leaf.value.parse() != Ok(0.0)),
            Some(rest) => rest.starts_with('.'),
            None => false,
        };
        let below: Vec<&Leaf> = leaves.all().iter().filter(is_of).collect();
        let Some(first) = below.first() else { continue };
        below.iter().for_each(|leaf| leaf.used.set(true));
        let item = NotModelled::new(path, &first.value, Effect::Memory, what).at_some(first.span);
        leaves.reading.not_modelled.push(item);
        any = true;
    }
    any
}

/// What sets the step apart from those that XLA compiled for TPUs (`tests/data/levanter/steps.jsonl`); empty for one like them.
fn unlike(leaves: &Leaves<'_>) -> Vec<String> {
    let mut found = jax::unlike(leaves, &RECORDED);
    if leaves.text("model.type").is_none() {
        found.push("a model without its type".to_owned());
    }
    let mixed = leaves.text("trainer.mp").is_some_and(|policy| {
        let is = |names: [&str; 2], values: [&str; 2]| {
            policy
                .split(',')
                .filter_map(|part| part.trim().split_once('='))
                .any(|(name, value)| names.contains(&name) && values.contains(&value))
        };
        is(["p", "params"], ["f32", "float32"]) && is(["c", "compute"], ["bf16", "bfloat16"])
    });
    if !mixed {
        found.push(format!("trainer.mp {}", leaves.text("trainer.mp").unwrap_or("f32")));
    }
    let count = |field| leaves.reading.count(field);
    let head = count(Field::KvChannels)
        .or_else(|| count(Field::HiddenSize)?.checked_div(count(Field::NumAttentionHeads)?));
    // Attention of other sizes may be another kernel (`layers/attention.py:_tpu_splash_attention`).
    for (size, what) in [(head, "heads"), (count(Field::SeqLength), "sequences")] {
        match size {
            Some(size) if !size.is_multiple_of(COMPILED_LANES) => found.push(format!("{what} of {size}")),
            Some(_) => {}
            None => found.push(format!("{what} of unknown size")),
        }
    }
    let wide = |value: &str| value.parse::<u64>().is_ok_and(|width| width >= COMPILED_WIDTH);
    found.extend(jax::outside(leaves, Field::HiddenSize, wide));
    found
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
