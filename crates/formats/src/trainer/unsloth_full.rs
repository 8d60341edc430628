//! Full fine-tuning under unsloth (`full_finetuning`): transformers' modules, with each decoder layer compiled as one
//! region; all weights train, regardless of settings for quantization or adapters (`unsloth/models/loader.py`,
//! `vision.py:post_patch_model`, `unsloth_zoo/training_utils.py:prepare_model_for_training`).

use crate::leaves::{Leaf, Leaves};
use crate::{Asked, Effect, NotModelled, Origin, Question};
use shardscope_plan::Field;

const SWITCH: &str = "full_finetuning";

/// The key for a program that gives its model no adapters.
pub(super) const BARE: &str = "unsloth_bare";

/// The key for a program that calls `unsloth_multigpu.enable_multi_gpu` (tanghui315/unsloth-multigpu, `core/ddp_launcher.py`).
pub(super) const PROCESSES: &str = "enable_multi_gpu";

/// Whether the program's own text starts such processes.
pub(super) fn told(text: &str) -> Option<(&'static str, &'static str)> {
    text.contains("enable_multi_gpu(").then_some((PROCESSES, "true"))
}

/// The switch, if it is on.
pub(super) fn switch<'t>(leaves: &Leaves<'t>) -> Option<&'t Leaf> {
    leaves.yes(SWITCH)
}

/// Sets what trains and the format of weights: bf16, with norms in fp32, or all of them in fp32.
/// Returns whether all weights train.
///
/// Norm weights are counted in bf16, although each takes 2 bytes more, and so does its gradient.
pub(super) fn read(leaves: &mut Leaves<'_>) -> bool {
    leaves.pass(SWITCH);
    let Some(leaf) = switch(leaves) else { return false };
    let quantized = [Field::BaseQuantization, Field::DoubleQuantization];
    leaves.reading.keep(&|found| !quantized.contains(&found.field));
    leaves.say(Field::TrainType, "full", leaf);
    let stated = leaves.first(&["dtype", "torch_dtype"]);
    if let Some(half) =
        stated.filter(|leaf| leaf.value.ends_with("float16") && !leaf.value.contains("bfloat"))
    {
        leaves.lack(half, Effect::Memory, "weights loaded in fp16 that unsloth trains in fp32");
    }
    let wide = leaves.flag("float32_mixed_precision") == Some(true);
    if wide && leaves.reading.value(Field::ParamsDtype) != Some("fp32") {
        leaves.reading.keep(&|found| found.field != Field::ParamsDtype);
        leaves.state(Field::ParamsDtype, "fp32", Origin::Derived, "float32_mixed_precision");
    }
    // `get_peft_model` returns immediately, so only the loader's arguments count.
    let stated =
        leaves.all().iter().find(|leaf| leaf.path == "use_gradient_checkpointing" && !leaf.value.is_empty());
    if leaves.reading.value(Field::LoraRank).is_some()
        && let Some(leaf) = stated.filter(|leaf| leaf.value != "unsloth")
    {
        leaves.lack(
            leaf,
            Effect::Memory,
            "checkpointing stated beside adapters, which full fine-tuning leaves aside",
        );
    }
    true
}

/// Stops at a program that gives its model no adapters and does not train it in full
/// (`transformers/trainer.py`: "You cannot perform fine-tuning on purely quantized models").
pub(super) fn without_adapters(leaves: &mut Leaves<'_>) {
    leaves.pass(BARE);
    if leaves.has(BARE) && switch(leaves).is_none() {
        let what =
            "a model without adapters: in 4 bits the Trainer refuses it, in 16 all its weights would train";
        leaves.reading.not_modelled.push(NotModelled::new("get_peft_model", "", Effect::Memory, what));
    }
}

/// Reports full training that was not recorded, once the model is known.
pub(super) fn with_model(leaves: &mut Leaves<'_>, whole: bool) {
    if whole && switch(leaves).is_none() {
        let what = "full fine-tuning without full_finetuning, for which unsloth freezes all weights";
        leaves.reading.not_modelled.push(NotModelled::new("get_peft_model", "", Effect::Memory, what));
    }
}

/// Asks whether the model is loaded in 4 bits, which the program computes.
pub(super) fn ask_for_bits(leaves: &mut Leaves<'_>, leaf: &Leaf) {
    leaves.say(Field::BaseQuantization, "", leaf);
    leaves.reading.questions.push(Question {
        asks: Asked::Setting(Field::BaseQuantization),
        prompt: "Does the program load the model in 4 bits (nf4), or in 16 (none)?".to_owned(),
        choices: ["nf4", "none"].map(str::to_owned).to_vec(),
        proposal: Some("nf4".to_owned()),
    });
}
