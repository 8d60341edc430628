//! Which layers are recomputed, and by which of PyTorch's checkpoints.

use super::dialect::Dialect;
use super::fused_head;
use crate::formats::leaves::Leaves;
use crate::{Effect, NotModelled};
use shardscope_plan::{Field, Origin};

pub(super) fn read(leaves: &mut Leaves<'_>) {
    for path in ["gradient_checkpointing", "activation_checkpointing"] {
        if let Some(leaf) = leaves.get(path) {
            // axolotl's "offload" moves the kept inputs to the host besides.
            if leaf.value.contains("offload") {
                let what = "saved layer inputs offloaded to the host";
                let item = NotModelled::new(path, &leaf.value, Effect::Memory, what).at_some(leaf.span);
                leaves.reading.not_modelled.push(item);
            }
            leaves.switch(Field::GradientCheckpointing, leaf.flag() != Some(false), leaf);
        }
    }
    if let Some(leaf) = leaves.yes("disable_gradient_checkpointing") {
        leaves.switch(Field::GradientCheckpointing, false, leaf);
    }
}

/// Where checkpoints are told to be reentrant or not, under any of these.
const TOLD: [&str; 4] = [
    "use_reentrant_gc",
    "use_reentrant",
    "gradient_checkpointing_use_reentrant",
    "gradient_checkpointing_kwargs.use_reentrant",
];

/// Once it is known what shards the weights and on which loss. Both kinds keep the same tensors; the reentrant one has no hooks in Python.
pub(super) fn reentrance(leaves: &mut Leaves<'_>, dialect: Dialect) {
    let told = TOLD.iter().filter_map(|path| leaves.get(path)).find(|leaf| leaf.flag().is_some());
    if let Some(leaf) = told {
        return leaves.follow(&leaf.path, Field::ReentrantCheckpoints, true);
    }
    // As a command has it: one word of JSON.
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

/// Why checkpoints are reentrant where nothing is told of them; transformers has made them so until release 5, and TRL
/// over it until it said otherwise itself. What ms-swift makes of one process alone, a reentrant one, is not told from what it makes of
/// several; nor is TRL's exception, adapters under ZeRO-3.
fn reentrant(leaves: &Leaves<'_>, dialect: Dialect) -> Option<&'static str> {
    let said = |field| leaves.reading.value(field);
    let sharded = said(Field::DataParallelEngine).is_some_and(|engine| engine != "ddp");
    match dialect {
        Dialect::LlamaFactory if said(Field::DataParallelEngine) != Some("fsdp2") => {
            Some("LLaMA-Factory's use_reentrant_gc")
        }
        Dialect::Axolotl if matches!(said(Field::TrainingObjective), None | Some("" | "sft")) => {
            Some("axolotl's default for supervised training (utils/config: normalize_config)")
        }
        Dialect::Swift if sharded => {
            Some("ms-swift under DeepSpeed or FSDP (trainers/mixin.py: _fix_gradient_checkpointing)")
        }
        Dialect::Transformers | Dialect::Trl if fused_head::is_of_four(leaves) => {
            Some("transformers 4, which an argument of the text belongs to")
        }
        _ => None,
    }
}
