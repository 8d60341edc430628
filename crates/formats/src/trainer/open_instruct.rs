//! What open-instruct's programs do of their own.

use crate::Effect;
use crate::leaves::Leaves;
use shardscope_plan::Field;

/// Runs once the objective is known.
///
/// `finetune.py` loads a model with `attn_implementation="flash_attention_2" if args.use_flash_attn else "eager"` since
/// September 2024, and left the choice to transformers before (`use_flash_attention_2=False`), as `dpo_tune.py` did until
/// 2025. Lists of data sets are of the later releases.
pub(super) fn read(leaves: &mut Leaves<'_>) {
    if let Some(leaf) = leaves.get("use_flash_attn").filter(|leaf| leaf.flag() == Some(false)) {
        let tunes = matches!(leaves.reading.value(Field::TrainingObjective), None | Some("" | "sft"));
        if !tunes {
            leaves.lack(
                leaf,
                Effect::Memory,
                "attention without flash-attn, which releases of open-instruct choose differently",
            );
        } else if leaves.has("dataset_mixer_list") {
            leaves.say_noted(
                Field::AttnImplementation,
                "eager",
                leaf,
                "open_instruct/finetune.py without use_flash_attn",
            );
        } else {
            leaves.say_noted(
                Field::AttnImplementation,
                "sdpa",
                leaf,
                "transformers' own choice, in early open-instruct",
            );
        }
    }
}
