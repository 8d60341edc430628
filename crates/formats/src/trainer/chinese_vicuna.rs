//! Chinese-Vicuna's programs (Facico/Chinese-Vicuna, `finetune.py` and `finetune_chat.py`): transformers' Trainer over
//! LLM.int8() behind options of their own, with sizes that the programs fix.

use super::behind;
use crate::leaves::Leaves;
use crate::{Argument, Origin};
use shardscope_plan::Field;

/// The options of both.
const BOTH: &str = "data_path output_path model_path eval_steps save_steps test_size resume_from_checkpoint \
    lora_remote_checkpoint ignore_data_skip wandb";
/// Those of both that no other program here has together.
const SIGNS: [&str; 3] = ["output_path", "model_path", "test_size"];
/// The options of the second alone.
const CHAT: &str = "prompt_type num_epoch micro_batch total_batch log_steps warmup_ratio";

fn is_of(list: &str, name: &str) -> bool {
    list.split_ascii_whitespace().any(|known| known == name)
}

/// Whether these are options of one of the programs: the second's, if any is its own.
fn is_chat<'w>(names: impl Iterator<Item = &'w str> + Clone) -> Option<bool> {
    let known = names.clone().all(|name| is_of(BOTH, name) || is_of(CHAT, name));
    let signs = SIGNS.iter().all(|sign| names.clone().any(|name| name == *sign));
    (known && signs).then(|| names.clone().any(|name| is_of(CHAT, name)))
}

/// Whether a command is one of these programs'.
pub(super) fn is_command(program: &str, names: &[String]) -> bool {
    let chat = is_chat(names.iter().map(String::as_str));
    matches!(
        (program.rsplit('/').next(), chat),
        (Some("finetune.py"), Some(false)) | (Some("finetune_chat.py"), Some(true))
    )
}

/// What the programs fix or default to; returns whether these are their options.
pub(super) fn read(leaves: &mut Leaves<'_>) -> bool {
    let Some(chat) = is_chat(behind::written(leaves)) else { return false };
    let why = "as Chinese-Vicuna's program does";
    // `GRADIENT_ACCUMULATION_STEPS = BATCH_SIZE // MICRO_BATCH_SIZE`.
    let micro = leaves.whole("micro_batch").unwrap_or(4).max(1);
    let total = leaves.whole("total_batch").unwrap_or(128);
    let batch = (total / micro).saturating_mul(micro);
    let layers =
        if chat { "q_proj v_proj k_proj o_proj down_proj gate_proj up_proj" } else { "q_proj v_proj" };
    leaves.state_all(
        &[
            (Field::MicroBatchSize, &micro.to_string()),
            (Field::GlobalBatchSize, &batch.to_string()),
            (Field::SeqLength, if chat { "2048" } else { "256" }),
            (Field::TrainType, "qlora"),
            (Field::BaseQuantization, "int8"),
            (Field::ParamsDtype, "fp16"),
            (Field::Fp16, "true"),
            (Field::UpcastNonQuantized, "true"),
            (Field::GradientCheckpointing, "true"),
            (Field::Optimizer, "adamw_torch"),
            (Field::LoraRank, "8"),
            (Field::LoraAlpha, "16"),
            (Field::LoraDropout, "0.05"),
            (Field::LoraTargetModules, layers),
        ],
        Origin::Derived,
        why,
    );
    // 200 samples are held out by default, and evaluated in the Trainer's own batches.
    if leaves.text("test_size") != Some("0") {
        leaves.state(Field::EvaluationBatchSize, "8", Origin::Derived, why);
    }
    for path in BOTH.split_ascii_whitespace().chain(CHAT.split_ascii_whitespace()) {
        leaves.pass(path);
    }
    true
}

/// The names of a command's options.
pub(super) fn names(words: &[Argument]) -> Vec<String> {
    let options = words.iter().filter_map(|word| word.text.strip_prefix("--"));
    options.map(|name| name.split('=').next().unwrap_or(name).replace('-', "_")).collect()
}
