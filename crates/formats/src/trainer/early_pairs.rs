//! TRL's DPO trainer of before 0.9, whose lengths were arguments of its own (`trl/trainer/dpo_trainer.py:__init__`).

use crate::leaves::Leaves;
use crate::{Effect, NotModelled};

/// `max_target_length` is for models with an encoder there. Over quantized weights the trainer casts adapters, embeddings and
/// norms (`peft_module_casting_to_bf16`). ChatLLM's program, derived from FastChat's, trains embedding and output layer beside
/// its adapters (`fastchat/train/train_dpo_lora.py:LoraArguments`).
pub(super) fn read(leaves: &mut Leaves<'_>) {
    let own = ["beta", "max_length", "max_prompt_length"].iter().all(|path| leaves.has(path));
    let Some(leaf) = own.then(|| leaves.get("max_target_length")).flatten() else { return };
    // ChatLLM's `lora_modules_to_save` defaults to both, quantized or not.
    if leaves.has("lora_r") && !leaves.has("lora_modules_to_save") {
        let what = "an embedding and an output layer that the program trains beside its adapters (ChatLLM)";
        let item = NotModelled::new(&leaf.path, &leaf.value, Effect::Model, what).at_some(leaf.span);
        leaves.reading.not_modelled.push(item);
    }
    if leaves.yes("q_lora").is_some() {
        let what = "QLoRA under an early TRL, which casts adapters and embeddings by itself";
        let item = NotModelled::new(&leaf.path, &leaf.value, Effect::Memory, what).at_some(leaf.span);
        leaves.reading.not_modelled.push(item);
    }
    leaves.pass("max_target_length");
}
