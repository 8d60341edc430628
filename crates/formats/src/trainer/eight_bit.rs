//! States of bitsandbytes' 8-bit optimizers when created by transformers' Trainer, and which step
//! implementation of PyTorch's AdamW runs.

use super::dialect::Dialect;
use crate::Origin;
use crate::leaves::Leaves;
use shardscope_plan::Field;

/// Keys with which a trainer creates an optimizer with its own parameter groups, without the Trainer's override
/// (`unsloth/trainer.py:_create_unsloth_optimizer`, `axolotl/core/trainers/mixins/optimizer.py:create_optimizer`).
const OWN_GROUPS: [&str; 5] =
    ["embedding_learning_rate", "embedding_lr", "embedding_lr_scale", "lr_groups", "loraplus_lr_ratio"];

/// Optimizers of the Trainer that by default use foreach on CUDA; the Trainer does not request anything else. SGD
/// without decay creates no temporaries.
const FOREACH: [&str; 4] = ["adamw_torch", "rmsprop", "adagrad", "schedule_free_adamw"];

/// Trainer's override of the word embedding's states (`transformers/trainer.py:create_optimizer`). Runs
/// once the training type is known.
pub(super) fn read(leaves: &mut Leaves<'_>, dialect: Dialect) {
    foreach(leaves, dialect);
    // These have their own training loops.
    if matches!(dialect, Dialect::OpenInstruct | Dialect::DeepSpeedChat | Dialect::LlamaCookbook) {
        return;
    }
    // With unsloth's arguments it changes nothing else.
    if dialect.is_unsloth() {
        leaves.pass("embedding_learning_rate");
    }
    let eight = leaves.reading.value(Field::Optimizer).is_some_and(|name| {
        // torchao's is called `adamw_torch_8bit`.
        name.contains("8bit") && !name.contains("torch") && !name.contains("galore")
    });
    let adapters = matches!(leaves.reading.value(Field::TrainType), Some("lora" | "qlora"));
    let frozen = adapters && leaves.reading.value(Field::ModulesToSave).is_none();
    if eight && !frozen && !OWN_GROUPS.iter().any(|path| leaves.has(path)) {
        let why = "transformers' Trainer sets optim_bits=32 for every nn.Embedding";
        leaves.state(Field::WholeEmbeddingStates, "true", Origin::Derived, why);
    }
}

/// On CUDA `torch.optim.AdamW` uses foreach by default (`torch/optim/adam.py:adam`): so do the Trainer's
/// `adamw_torch`, its default before `adamw_torch_fused` (`transformers/trainer_optimizer.py:_get_adamw_torch`), and
/// llama-cookbook's loop (`finetuning.py`).
fn foreach(leaves: &mut Leaves<'_>, dialect: Dialect) {
    let named = leaves.reading.value(Field::Optimizer);
    let plain = match dialect {
        Dialect::OpenInstruct | Dialect::DeepSpeedChat => false,
        Dialect::LlamaCookbook => named.is_none_or(|name| name == "adam"),
        _ => named.is_some_and(|name| FOREACH.contains(&name)),
    };
    if plain {
        let why = "not told to be fused: PyTorch's foreach implementation";
        leaves.state(Field::OptimizerForeach, "true", Origin::Derived, why);
    }
}
