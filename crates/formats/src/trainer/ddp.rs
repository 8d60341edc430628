//! How PyTorch's DDP fills its buckets, where the Trainer wraps the model in it.

use super::dialect::Dialect;
use crate::leaves::{Leaf, Leaves};
use shardscope_plan::{Field, Origin};

const UNUSED: &str = "ddp_find_unused_parameters";
const CAP: &str = "ddp_bucket_cap_mb";

/// Runs once sharding and what trains are known; under FSDP and DeepSpeed the options change nothing. A value that a program
/// decides (`False if ddp else None`) leaves the default: it is only a matter of which tensors are reduced together.
pub(super) fn read(leaves: &mut Leaves<'_>, dialect: Dialect) {
    let engine = leaves.reading.value(Field::DataParallelEngine);
    if engine.is_some_and(|engine| engine != "ddp") {
        return;
    }
    if let Some((leaf, on)) = leaves.get(UNUSED).and_then(|leaf| leaf.decides().map(|on| (leaf, on))) {
        leaves.switch(Field::DdpFindUnused, on, leaf);
    }
    if let Some(leaf) = leaves.get(CAP).filter(|leaf| leaf.hole.is_none())
        && let Some(cap) = Leaf::whole(leaf).filter(|cap| *cap > 0)
    {
        leaves.say(Field::DdpBucketCap, &cap.to_string(), leaf);
    }
    let adapts = matches!(leaves.reading.value(Field::TrainType), Some("lora" | "qlora"));
    let (value, why) = match dialect {
        Dialect::LlamaFactory if adapts => {
            ("false", "LLaMA-Factory turns it off for LoRA (`hparams/parser.py:get_train_args`)")
        }
        // Except for Gemma 4 (`utils/config/__init__.py:normalize_config`).
        Dialect::Axolotl
            if leaves.first(&["base_model"]).is_some_and(|leaf| leaf.value.contains("gemma-4")) =>
        {
            ("true", "axolotl turns it on for Gemma 4")
        }
        // Its builders of preference trainers say nothing (`core/builders/rl.py`).
        Dialect::Axolotl if leaves.has("rl") => return,
        Dialect::Axolotl => ("false", "axolotl's default (`core/builders/causal.py`)"),
        // `finetune.py`: `Accelerator` wraps the model with PyTorch's own defaults.
        Dialect::OpenInstruct => ("false", "PyTorch's default, which open-instruct leaves"),
        _ if super::authors::is_firefly(leaves) => ("false", "Firefly's `train.py`"),
        _ => return,
    };
    leaves.state(Field::DdpFindUnused, value, Origin::Default, why);
}
