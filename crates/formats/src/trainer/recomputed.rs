//! Which layers are recomputed, and with which kind of PyTorch checkpoint.

use super::behind;
use super::dialect::Dialect;
use crate::leaves::{Leaf, Leaves};
use crate::{Effect, NotModelled};
use shardscope_plan::{Field, Origin};

pub(super) fn read(leaves: &mut Leaves<'_>) {
    for path in ["gradient_checkpointing", "activation_checkpointing", "grad_checkpoint"] {
        if let Some(leaf) = leaves.get(path) {
            // axolotl's "offload" also moves the saved inputs to the host.
            if leaf.value.contains("offload") {
                let what = "saved layer inputs offloaded to the host";
                let item = NotModelled::new(path, &leaf.value, Effect::Memory, what).at_some(leaf.span);
                leaves.reading.not_modelled.push(item);
            }
            leaves.switch(Field::GradientCheckpointing, leaf.flag() != Some(false), leaf);
        }
    }
    // The latter is made by transformers' parser for a switch that is on by default, as TRL's is (`hf_argparser.py`).
    let off = ["disable_gradient_checkpointing", "no_gradient_checkpointing"];
    if let Some(leaf) = off.iter().find_map(|path| leaves.yes(path)) {
        leaves.switch(Field::GradientCheckpointing, false, leaf);
    }
}

/// LLaMA-Factory's own checkpoints, once it is known which code trains the model: they offload every layer's
/// input to the host (`model/model_utils/checkpointing.py:get_unsloth_gradient_checkpointing_func`).
/// unsloth's models use unsloth's.
pub(super) fn sent_inputs(leaves: &mut Leaves<'_>, dialect: Dialect, by_unsloth: bool) {
    let recomputes = leaves.reading.value(Field::GradientCheckpointing) != Some("false");
    let Some(leaf) = leaves.yes("use_unsloth_gc").filter(|_| recomputes && !by_unsloth) else {
        return leaves.pass("use_unsloth_gc");
    };
    if dialect == Dialect::LlamaFactory {
        leaves.switch(Field::OffloadEveryInput, true, leaf);
    } else {
        leaves.lack(leaf, Effect::Memory, "saved layer inputs offloaded to the host");
    }
}

/// Keys that state whether checkpoints are reentrant.
const STATED_BY: [&str; 5] = [
    "use_reentrant_gc",
    "use_reentrant",
    "gradient_checkpointing_use_reentrant",
    "gradient_checkpointing_kwargs.use_reentrant",
    // Its name since transformers 5.23 (`training_args.py`).
    "activation_checkpointing_kwargs.use_reentrant",
];

/// Runs once sharding and loss are known. Both kinds save the same tensors; the reentrant one has no Python hooks.
pub(super) fn reentrance(leaves: &mut Leaves<'_>, dialect: Dialect) {
    let stated = STATED_BY.iter().filter_map(|path| leaves.get(path)).find(|leaf| leaf.flag().is_some());
    if let Some(leaf) = stated {
        // Another key that says the same.
        let again = |other: &&Leaf| STATED_BY.contains(&other.path.as_str()) && other.flag() == leaf.flag();
        leaves.all().iter().filter(again).for_each(|other| other.used.set(true));
        return leaves.follow(&leaf.path, Field::ReentrantCheckpoints, true);
    }
    // As in a command: a single word of JSON.
    if let Some(leaf) = leaves.get("gradient_checkpointing_kwargs")
        && let Some((_, said)) = leaf.value.split_once("use_reentrant")
    {
        let said = said.trim_start_matches(|sign: char| !sign.is_alphabetic()).to_ascii_lowercase();
        return leaves.switch(Field::ReentrantCheckpoints, said.starts_with("true"), leaf);
    }
    if let Some(why) = reentrant(leaves, dialect) {
        leaves.state(Field::ReentrantCheckpoints, "true", Origin::Default, why);
    }
}

/// Why checkpoints are reentrant unless stated otherwise; transformers made them so until release 5, and TRL with it
/// until TRL set its own default. ms-swift's exception for a single process, which is reentrant, is not distinguished
/// from several; nor is TRL's exception, adapters under ZeRO-3.
fn reentrant(leaves: &Leaves<'_>, dialect: Dialect) -> Option<&'static str> {
    let said = |field| leaves.reading.value(field);
    let sharded = said(Field::DataParallelEngine).is_some_and(|engine| engine != "ddp");
    match dialect {
        Dialect::LlamaFactory if said(Field::DataParallelEngine) != Some("fsdp2") => {
            Some("LLaMA-Factory's use_reentrant_gc")
        }
        // FSDP's own wrappers are not reentrant (`accelerate/utils/fsdp_utils.py:fsdp2_prepare_model`).
        Dialect::Axolotl if leaves.flag("fsdp_config.activation_checkpointing") == Some(true) => None,
        Dialect::Axolotl if matches!(said(Field::TrainingObjective), None | Some("" | "sft")) => {
            Some("axolotl's default for supervised training (utils/config: normalize_config)")
        }
        Dialect::Swift if sharded => {
            Some("ms-swift under DeepSpeed or FSDP (trainers/mixin.py: _fix_gradient_checkpointing)")
        }
        Dialect::Transformers | Dialect::Trl if behind::is_of_four(leaves) => {
            Some("transformers 4, which the text tells")
        }
        _ => None,
    }
}
