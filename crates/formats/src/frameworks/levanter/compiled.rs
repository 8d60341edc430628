//! What sets a step apart from those that XLA compiled for TPUs (`tests/data/levanter/steps.jsonl`).

use crate::frameworks::jax;
use crate::leaves::{Leaf, Leaves};
use crate::{Effect, NotModelled};
use shardscope_plan::Field;
use shardscope_plan::limits::{COMPILED_LANES, COMPILED_WIDTH};

/// Keys that change the compiled step, and the values that were compiled.
const RECORDED: [(&str, &[&str]); 20] = [
    // Mistral's model has Llama's transformer and embedding, without its window (`models/mistral.py`).
    ("model.type", &["llama", "mistral"]),
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

/// Any option of Adam stops that was not in the recorded steps and may change them. Other optimizers stop by their type.
pub(super) fn options(leaves: &mut Leaves<'_>) {
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
pub(super) fn beside(leaves: &mut Leaves<'_>) -> bool {
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
/// Of a model that a checkpoint's configuration replaces, as `replaced` says, nothing in the file counts.
pub(super) fn unlike(leaves: &Leaves<'_>, replaced: bool) -> Vec<String> {
    let of_file = |(path, _): &&(&str, &[&str])| !replaced || !path.starts_with("model.");
    let recorded: Vec<_> = RECORDED.iter().filter(of_file).copied().collect();
    let mut found = jax::unlike(leaves, &recorded);
    if leaves.text("model.type").is_none() && !replaced {
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
            // A model that is not known is asked for.
            Some(_) => {}
            None if replaced => {}
            None => found.push(format!("{what} of unknown size")),
        }
    }
    let wide = |value: &str| value.parse::<u64>().is_ok_and(|width| width >= COMPILED_WIDTH);
    found.extend(jax::outside(leaves, Field::HiddenSize, wide));
    found
}
