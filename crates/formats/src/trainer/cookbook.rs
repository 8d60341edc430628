//! llama-cookbook's arguments (`configs/training.py`, `configs/fsdp.py`, `finetuning.py`).

use crate::leaves::Leaves;
use crate::{Effect, NotModelled, Origin};
use shardscope_plan::Field;

pub(super) fn read(leaves: &mut Leaves<'_>) {
    if let Some(leaf) = leaves.yes("use_fp16") {
        leaves.switch(Field::Fp16, true, leaf);
        leaves.say(Field::ParamsDtype, "fp16", leaf);
        leaves.say(Field::Autocast, "fp16", leaf);
    } else {
        leaves.state(Field::Bf16, "true", Origin::Default, "FSDP's policy, and the checkpoint's own format");
    }
    if let Some(leaf) = leaves.get("quantization").filter(|leaf| leaf.flag() != Some(false)) {
        // In older versions a switch without a value meant 8 bits.
        let kind = if leaf.value.starts_with('4') { "nf4" } else { "int8" };
        leaves.say(Field::BaseQuantization, kind, leaf);
    }
    if let Some(leaf) = leaves.get("peft_method").filter(|leaf| leaf.value != "lora") {
        let what = "adapters other than LoRA";
        let item = NotModelled::new("peft_method", &leaf.value, Effect::Model, what).at_some(leaf.span);
        leaves.reading.not_modelled.push(item);
    }
    leaves.pass("use_fast_kernels");
    // Norms are not upcast and the cache is not turned off, unlike with `prepare_model_for_kbit_training` and FSDP.
    let sharded = leaves.yes("enable_fsdp");
    let rule = "finetuning.py";
    leaves.state_all(
        &[
            (Field::UpcastNonQuantized, "false"),
            (Field::InputRequireGrads, if sharded.is_some() { "true" } else { "false" }),
            (Field::UseCache, if sharded.is_some() { "false" } else { "true" }),
        ],
        Origin::Derived,
        rule,
    );
    let Some(leaf) = sharded else { return };
    leaves.say(Field::DataParallelEngine, "fsdp1", leaf);
    leaves.say(Field::ZeroStage, "3", leaf);
    // `utils/config_utils.py:update_config` takes a key with and without the name of its configuration.
    let recomputes = ["fsdp_config.fsdp_activation_checkpointing", "fsdp_activation_checkpointing"]
        .iter()
        .find_map(|path| leaves.flag(path))
        != Some(false);
    leaves.pass("fsdp_activation_checkpointing");
    let note = "fsdp_activation_checkpointing is on by default";
    leaves.say_noted(Field::GradientCheckpointing, &recomputes.to_string(), leaf, note);
    for (path, what) in [
        ("fsdp_config.hsdp", "sharding within groups, replicated across them (HSDP)"),
        ("fsdp_config.fsdp_cpu_offload", "weights and gradients on the host (FSDP)"),
        ("fsdp_cpu_offload", "weights and gradients on the host (FSDP)"),
    ] {
        if let Some(leaf) = leaves.yes(path) {
            let item = NotModelled::new(path, "", Effect::Memory, what).at_some(leaf.span);
            leaves.reading.not_modelled.push(item);
        }
    }
    if let Some(leaf) = leaves.get("fsdp_config.optimizer").filter(|leaf| leaf.value != "AdamW") {
        leaves.say(Field::Optimizer, &leaf.value, leaf);
    }
}
