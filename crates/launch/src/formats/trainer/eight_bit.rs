//! States of bitsandbytes' 8-bit optimizers where transformers' Trainer makes them, and which step of PyTorch's AdamW it takes.

use super::dialect::Dialect;
use crate::Origin;
use crate::formats::leaves::Leaves;
use shardscope_plan::Field;

/// Keys by which a trainer makes an optimizer of its own groups, without what Trainer overrides
/// (`unsloth/trainer.py:_create_unsloth_optimizer`, `axolotl/core/trainers/mixins/optimizer.py:create_optimizer`).
const OWN_GROUPS: [&str; 5] =
    ["embedding_learning_rate", "embedding_lr", "embedding_lr_scale", "lr_groups", "loraplus_lr_ratio"];

/// Trainer's override of the word embedding's states (`transformers/trainer.py:create_optimizer`). Once the way to train is known.
pub(super) fn read(leaves: &mut Leaves<'_>, dialect: Dialect) {
    foreach(leaves, dialect);
    // Loops of their own.
    if matches!(dialect, Dialect::OpenInstruct | Dialect::DeepSpeedChat | Dialect::LlamaCookbook) {
        return;
    }
    // Of unsloth's arguments it changes nothing else.
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

/// Beside CUDA `torch.optim.AdamW` steps by foreach where nothing else is asked for (`torch/optim/adam.py:adam`): so does the Trainer's
/// `adamw_torch`, which has been its default before `adamw_torch_fused` (`transformers/trainer_optimizer.py:_get_adamw_torch`), and
/// llama-cookbook's loop (`finetuning.py`).
fn foreach(leaves: &mut Leaves<'_>, dialect: Dialect) {
    let named = leaves.reading.value(Field::Optimizer);
    let plain = match dialect {
        Dialect::OpenInstruct | Dialect::DeepSpeedChat => false,
        Dialect::LlamaCookbook => named.is_none_or(|name| name == "adam"),
        _ => named == Some("adamw_torch"),
    };
    if plain {
        let why = "torch.optim.AdamW without fused steps over all tensors at once";
        leaves.state(Field::OptimizerForeach, "true", Origin::Derived, why);
    }
}
