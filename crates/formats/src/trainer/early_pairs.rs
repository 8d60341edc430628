//! TRL's DPO trainer of before 0.9, whose lengths were arguments of its own (`trl/trainer/dpo_trainer.py:__init__`).

use crate::leaves::{Leaf, Leaves};
use crate::{Effect, NotModelled};

/// ChatLLM's programs, derived from FastChat's, train embedding and output layer beside their adapters unless
/// `lora_modules_to_save` says otherwise, quantized or not (`fastchat/train/train_lora_custom.py`,
/// `train_dpo_lora.py:LoraArguments`). FastChat's own has no `data_format`.
fn beside_adapters(leaves: &mut Leaves<'_>, pairs: Option<&Leaf>) {
    let of_fastchat = ["q_lora", "flash_attn", "load_in_8bit"].iter().any(|path| leaves.has(path));
    let formatted = leaves.get("data_format").filter(|_| of_fastchat);
    let Some(leaf) = pairs.or(formatted).filter(|_| leaves.has("lora_r")) else { return };
    if !leaves.has("lora_modules_to_save") {
        let what = "an embedding and an output layer that the program trains beside its adapters (ChatLLM)";
        let item = NotModelled::new(&leaf.path, &leaf.value, Effect::Model, what).at_some(leaf.span);
        leaves.reading.not_modelled.push(item);
    }
}

/// `max_target_length` is for models with an encoder there. Over quantized weights the trainer casts adapters, embeddings and
/// norms (`peft_module_casting_to_bf16`).
pub(super) fn read(leaves: &mut Leaves<'_>) {
    let own = ["beta", "max_length", "max_prompt_length"].iter().all(|path| leaves.has(path));
    let pairs = own.then(|| leaves.get("max_target_length")).flatten();
    beside_adapters(leaves, pairs);
    let Some(leaf) = pairs else { return };
    if leaves.yes("q_lora").is_some() {
        let what = "QLoRA under an early TRL, which casts adapters and embeddings by itself";
        let item = NotModelled::new(&leaf.path, &leaf.value, Effect::Memory, what).at_some(leaf.span);
        leaves.reading.not_modelled.push(item);
    }
    leaves.pass("max_target_length");
}
