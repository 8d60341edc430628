//! alpaca-lora's program (tloen/alpaca-lora, `finetune.py:train`): transformers' Trainer behind parameters of its own,
//! which `fire` turns into options. Programs derived from it that have more options are not read as it.

use super::{behind, chinese_vicuna};
use crate::Argument;
use crate::Origin;
use crate::leaves::{Leaf, Leaves};
use shardscope_plan::Field;

const PROGRAM: &str = "finetune.py";
/// The option that it requires.
const MODEL: &str = "base_model";
/// Its other options.
const OPTIONS: &str = "data_path output_dir batch_size micro_batch_size num_epochs learning_rate cutoff_len val_set_size \
    lora_r lora_alpha lora_dropout lora_target_modules train_on_inputs add_eos_token group_by_length wandb_project \
    wandb_run_name wandb_watch wandb_log_model resume_from_checkpoint prompt_template_name";
/// Those that no other trainer here has: one of them is part of its command.
const OWN: [&str; 3] = ["cutoff_len", "prompt_template_name", "micro_batch_size"];

fn is_own<'w>(mut names: impl Iterator<Item = &'w str> + Clone) -> bool {
    let has = |wanted: &str| names.clone().any(|name| name == wanted);
    has(MODEL)
        && OWN.iter().any(|name| has(name))
        && names.all(|name| name == MODEL || OPTIONS.split_ascii_whitespace().any(|known| known == name))
}

/// Whether a command is one of this program, or of Chinese-Vicuna's, which are made of it.
pub(super) fn is_command(program: &str, words: &[Argument]) -> bool {
    let names = chinese_vicuna::names(words);
    let own = program.rsplit('/').next() == Some(PROGRAM) && is_own(names.iter().map(String::as_str));
    own || chinese_vicuna::is_command(program, &names)
}

/// Its defaults, and what it does whatever its options say: LLM.int8() below LoRA, fp16, and layers that
/// `prepare_model_for_int8_training` checkpoints (`peft/utils/other.py`).
pub(super) fn read(leaves: &mut Leaves<'_>) {
    if chinese_vicuna::read(leaves) {
        return;
    }
    if !is_own(behind::written(leaves)) {
        return;
    }
    let why = "default of alpaca-lora's finetune.py";
    // The batch of all ranks, in micro-batches: `gradient_accumulation_steps = batch_size // micro_batch_size`.
    match leaves.get("batch_size") {
        Some(leaf) => leaves.say(Field::GlobalBatchSize, &leaf.value, leaf),
        None => leaves.state(Field::GlobalBatchSize, "128", Origin::Default, why),
    }
    leaves.pass("batch_size");
    leaves.state_all(
        &[
            (Field::TrainType, "qlora"),
            (Field::BaseQuantization, "int8"),
            (Field::ParamsDtype, "fp16"),
            (Field::Fp16, "true"),
            (Field::UpcastNonQuantized, "true"),
            (Field::GradientCheckpointing, "true"),
            (Field::Optimizer, "adamw_torch"),
        ],
        Origin::Derived,
        "as alpaca-lora's finetune.py does",
    );
    let unless = |leaves: &mut Leaves<'_>, key: &str, field: Field, value: &str| {
        if !leaves.has(key) {
            leaves.state(field, value, Origin::Default, why);
        }
    };
    unless(leaves, "micro_batch_size", Field::MicroBatchSize, "4");
    unless(leaves, "cutoff_len", Field::SeqLength, "256");
    unless(leaves, "lora_r", Field::LoraRank, "8");
    unless(leaves, "lora_alpha", Field::LoraAlpha, "16");
    unless(leaves, "lora_dropout", Field::LoraDropout, "0.05");
    unless(leaves, "lora_target_modules", Field::LoraTargetModules, "q_proj v_proj");
    // It evaluates wherever samples are held out, 2,000 by default, in the Trainer's own batches.
    if leaves.get("val_set_size").is_none_or(|leaf: &Leaf| leaf.value != "0") {
        leaves.state(Field::EvaluationBatchSize, "8", Origin::Default, why);
    }
    for path in ["val_set_size", "prompt_template_name", "add_eos_token"] {
        leaves.pass(path);
    }
}
