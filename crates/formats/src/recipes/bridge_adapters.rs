//! Adapters in recipes of Megatron-Bridge (`peft/lora.py`, `peft/canonical_lora.py`, `peft/dora.py`).

use super::super::leaves::Leaves;
use crate::{Effect, NotModelled};
use shardscope_plan::Field;
use shardscope_python::tree::{Tree, scalar};

/// What a recipe says of its adapters.
pub(super) fn read(leaves: &mut Leaves<'_>) {
    let Some(leaf) =
        leaves.get("peft").cloned().filter(|leaf| !leaf.value.is_empty() && leaf.value != "none")
    else {
        return;
    };
    leaves.say(Field::TrainType, "lora", &leaf);
    let canonical = leaf.value == "canonical_lora";
    let library = if canonical { "megatron-bridge-canonical" } else { "megatron-bridge" };
    leaves.say(Field::AdapterLibrary, library, &leaf);
    if leaf.value == "dora" {
        leaves.say(Field::UseDora, "true", &leaf);
    }
    leaves.take(&["peft.dim"], Field::LoraRank);
    leaves.take(&["peft.dropout"], Field::LoraDropout);
    leaves.take(&["peft.target_modules"], Field::LoraTargetModules);
    // Settings that share the adapters of experts differently (by default a rank's experts share
    // one), or give them another rank.
    for (path, usual) in [
        ("peft.normalize_moe_lora", false),
        ("peft.share_expert_adapters", true),
        ("peft.experts_shared_outer_loras", false),
        ("peft.sequence_parallel_input_regather", false),
        ("peft.a2a_experimental", false),
    ] {
        let other = leaves.flag(path).is_some_and(|on| on != usual);
        if let Some(leaf) = leaves.get(path).filter(|_| other) {
            let what = "adapters sharded or shared in another way";
            let item = NotModelled::new(path, &leaf.value, Effect::Memory, what).at_some(leaf.span);
            leaves.reading.not_modelled.push(item);
        }
    }
}

/// Adapters of this kind, with the settings in the call's own arguments.
pub(super) fn call(kind: &str, arguments: &[(Option<String>, Tree)]) -> Tree {
    let mut out = scalar(kind);
    for (name, tree) in arguments {
        let Some(name) = name.as_deref().filter(|name| *name != "peft_scheme") else { continue };
        for (path, scalar) in tree {
            let path = if path.is_empty() { name.to_owned() } else { format!("{name}.{path}") };
            out.push((path, scalar.clone()));
        }
    }
    out
}
