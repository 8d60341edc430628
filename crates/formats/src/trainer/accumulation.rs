//! When FSDP reduces gradients under accelerate, and `accelerator_config`, which may say otherwise.

use super::behind;
use super::dialect::Dialect;
use crate::leaves::{Leaf, Leaves};
use crate::{Asked, Effect, Found, NotModelled, Origin, Question};
use shardscope_plan::Field;

/// The argument of transformers that holds accelerate's settings: a group of keys, JSON in one word, or a file.
pub(super) const SETTINGS: &str = "accelerator_config";
const SYNCED: &str = "accelerator_config.gradient_accumulation_kwargs.sync_each_batch";

/// Under FSDP the Trainer's micro-batches but a step's last run under `Accelerator.no_sync`, so that their gradients stay whole
/// (`transformers/trainer.py:_inner_training_loop`; `accelerate/accelerator.py:accumulate`, `no_sync`). FSDP2's modules have no
/// method of that name, and accelerate calls theirs since huggingface/accelerate#3762.
pub(crate) fn waits(engine: &str) -> &'static str {
    if engine == "fsdp2" {
        "accelerate's no_sync: FSDP reduces gradients only on the last micro-batch of a step; before accelerate 1.11 FSDP2 reduced \
         them on each (defer_reduction=false)"
    } else {
        "accelerate's no_sync: FSDP reduces gradients only on the last micro-batch of a step"
    }
}

/// transformers 4.46 entered `no_sync` itself, whatever the argument says, until huggingface/transformers#43919 (February 2026).
const HEEDED: &str = "sync_each_batch: gradients are reduced on every micro-batch; transformers from 4.46 to the first releases \
    of 5 ignore it (defer_reduction=true)";
const OPEN: &str = "a release of transformers 4";

/// Reads when FSDP reduces gradients: `sync_each_batch` has them reduced, and held as shards, with every micro-batch.
pub(super) fn read(leaves: &mut Leaves<'_>, dialect: Dialect) {
    // llama-cookbook's own loop reduces gradients with every micro-batch (`utils/train_utils.py:train`).
    if dialect == Dialect::LlamaCookbook {
        return;
    }
    file(leaves);
    let engine = leaves.reading.value(Field::DataParallelEngine).unwrap_or_default().to_owned();
    // LLaMA-Factory's second trainer has a loop of its own, which reduces them each time.
    if !engine.starts_with("fsdp") || leaves.has("dist_config.name") {
        return;
    }
    let Some(leaf) = leaves.yes(SYNCED) else {
        leaves.state(Field::DeferReduction, "true", Origin::Default, waits(&engine));
        return;
    };
    // axolotl has arguments of the same names for its own.
    if dialect == Dialect::Axolotl || !behind::is_of_older(leaves) {
        leaves.say_noted(Field::DeferReduction, "false", leaf, HEEDED);
        return;
    }
    let mut found = Found::new(Field::DeferReduction, String::new(), Origin::Script);
    found.hole = Some(OPEN.to_owned());
    leaves.reading.take(found.by(leaf.path.as_str(), leaf.span));
    leaves.reading.questions.push(Question {
        asks: Asked::Setting(Field::DeferReduction),
        prompt: "Which release of transformers 4? Since 4.46 it ignores sync_each_batch, and gradients wait whole for the last \
                 micro-batch (true); before, they are reduced on each (false)"
            .to_owned(),
        choices: ["true", "false"].map(str::to_owned).to_vec(),
        proposal: Some("true".to_owned()),
    });
}

/// A file that is only named may count or share micro-batches, and reduce gradients on each.
fn file(leaves: &mut Leaves<'_>) {
    let says = |leaf: &&Leaf| {
        leaf.hole.is_some() || !matches!(leaf.value.as_str(), "" | "null" | "None" | "~" | "{}" | "true")
    };
    if let Some(leaf) = leaves.get(SETTINGS).filter(says) {
        let what = "accelerate's settings in a file that is only named, which may count, share or synchronize micro-batches";
        let item = NotModelled::new(SETTINGS, leaf.shown(), Effect::Memory, what).at_some(leaf.span);
        leaves.reading.not_modelled.push(item);
    }
    leaves.pass(SETTINGS);
}
