//! What open-instruct's programs do of their own.

use crate::Effect;
use crate::leaves::Leaves;
use shardscope_plan::Field;

/// Options of `finetune.py` that came with eager attention (commit 082b4005d of 27 August 2024) or after it. The list of data
/// sets came three weeks earlier: a text of those weeks is counted too high.
const SINCE_EAGER: &[&str] = &[
    "dataset_mixer_list",
    "fused_optimizer",
    "hf_metadata_dataset",
    "load_balancing_loss",
    "load_balancing_weight",
    "chat_template_name",
    "run_name",
    "try_auto_save_to_beaker",
    "cache_dataset_only",
    "packing",
    "sync_each_batch",
];

/// The one option of `finetune.py` that came after Liger's class was loaded with eager attention too (c9ee3cf59 of 13 August 2025).
const SINCE_EAGER_LIGER: &[&str] = &["sequence_parallel_size"];

/// Runs once the objective is known.
///
/// `finetune.py` loads a model with `attn_implementation="flash_attention_2" if args.use_flash_attn else "eager"` since August
/// 2024, and left the choice to transformers before (`use_flash_attention_2=False`, so sdpa), as it did for Liger's class from
/// March (efa36849b) to August 2025 and `dpo_tune.py` until 2025. No option of `finetune.py` was there only before.
pub(super) fn read(leaves: &mut Leaves<'_>) {
    // `dpo.py` trains OLMo-core's modules with them; they were passed over with every other `fsdp_` key.
    for path in ["fsdp_shard_degree", "fsdp_num_replicas"] {
        if let Some(leaf) = leaves.get(path) {
            leaves.lack(
                leaf,
                Effect::Memory,
                "groups of OLMo-core's FSDP, in which weights are sharded or replicated",
            );
        }
    }
    let Some(leaf) = leaves.get("use_flash_attn").filter(|leaf| leaf.flag() == Some(false)) else { return };
    let tunes = matches!(leaves.reading.value(Field::TrainingObjective), None | Some("" | "sft"));
    let marks = match leaves.yes("use_liger_kernel") {
        Some(_) => SINCE_EAGER_LIGER,
        None => SINCE_EAGER,
    };
    if tunes && marks.iter().any(|mark| leaves.has(mark)) {
        leaves.say_noted(
            Field::AttnImplementation,
            "eager",
            leaf,
            "open_instruct/finetune.py without use_flash_attn",
        );
    } else {
        let what = "attention without flash-attn, for which releases of open-instruct take eager or sdpa and nothing here tells which";
        leaves.lack(leaf, Effect::Memory, what);
    }
}
