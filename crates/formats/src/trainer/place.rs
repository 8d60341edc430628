//! Which trainer a command belongs to, recognized by the program and by its arguments.

use super::{Dialect, alpaca_lora};
use crate::Argument;
use crate::reader::Command;

/// Options that only trainers of transformers models have. Two of them make a command one of theirs.
const OWN: [&str; 20] = [
    "per_device_train_batch_size",
    "model_name_or_path",
    "gradient_accumulation_steps",
    "num_train_epochs",
    "lr_scheduler_type",
    "save_total_limit",
    "report_to",
    "warmup_ratio",
    "model_max_length",
    "max_seq_length",
    "lora_target_modules",
    "use_peft",
    "attn_implementation",
    "tuner_type",
    "dataset_num_proc",
    "per_device_eval_batch_size",
    // Of TRL's rollouts, beside a settings file that has the rest (`trl/trainer/grpo_config.py`).
    "num_generations",
    "max_completion_length",
    "max_prompt_length",
    "vllm_mode",
];
const ENOUGH: usize = 2;
/// Those among them that trainers of other libraries also have, with their own defaults
/// (align-anything): alone they prove nothing.
const COMMON: [&str; 3] = ["model_name_or_path", "lr_scheduler_type", "model_max_length"];
/// Options of `transformers.TrainingArguments` that custom loops around the same models hardly have.
const ARGUMENTS: [&str; 18] = [
    "save_total_limit",
    "warmup_ratio",
    "save_strategy",
    "evaluation_strategy",
    "eval_strategy",
    "logging_strategy",
    "logging_steps",
    "save_steps",
    "do_train",
    "overwrite_output_dir",
    "ddp_timeout",
    "ddp_find_unused_parameters",
    "remove_unused_columns",
    "dataloader_num_workers",
    "group_by_length",
    "tf32",
    "optim",
    "fsdp",
];
/// Options of DeepSpeed-Chat in addition to `--deepspeed`.
const DEEPSPEED_CHAT: [&str; 4] =
    ["zero_stage", "actor_zero_stage", "data_split", "num_padding_at_beginning"];
/// Options of Megatron-LM that no transformers trainer has: one of them makes the command Megatron's.
const MEGATRON: [&str; 12] = [
    "num_layers",
    "tensor_model_parallel_size",
    "pipeline_model_parallel_size",
    "expert_model_parallel_size",
    "expert_tensor_parallel_size",
    "recompute_granularity",
    "moe_grouped_gemm",
    "moe_permute_fusion",
    "use_distributed_optimizer",
    "sequence_parallel",
    "global_batch_size",
    "train_iters",
];

/// The trainer indicated by a program's name: `swift`, `llamafactory-cli`, `axolotl`, `trl`, and their modules.
pub(super) fn named_dialect(program: &str) -> Option<Dialect> {
    let path = program.to_ascii_lowercase();
    let last = path.rsplit('/').next().unwrap_or(&path);
    match () {
        () if path.contains("open_instruct/") => Some(Dialect::OpenInstruct),
        () if path.contains("axolotl") => Some(Dialect::Axolotl),
        () if path.contains("llamafactory") || path.contains("llama_factory") || last == "train_bash.py" => {
            Some(Dialect::LlamaFactory)
        }
        () if path.contains("swift/cli")
            || path == "swift"
            || path.starts_with("swift.")
            || last == "llm_sft.py" =>
        {
            Some(Dialect::Swift)
        }
        () if path == "trl" || path.contains("trl/scripts") || path.starts_with("trl.") => Some(Dialect::Trl),
        () => None,
    }
}

/// llama-cookbook, by its program and one of its own options.
fn cookbook(program: &str, words: &[Argument]) -> Option<Dialect> {
    const OWN: [&str; 4] =
        ["enable_fsdp", "peft_method", "batch_size_training", "dist_checkpoint_root_folder"];
    let module = program.contains("llama_recipes") || program.contains("llama_cookbook");
    let is_program = module || program.rsplit('/').next() == Some("finetuning.py");
    let own = words
        .iter()
        .filter_map(|word| word.text.strip_prefix("--"))
        .any(|word| OWN.contains(&word.split('=').next().unwrap_or(word)));
    (is_program && own).then_some(Dialect::LlamaCookbook)
}

/// Whether words of an unrecognized program are the Trainer's arguments, rather than those of a loop
/// that shares a few names with it.
pub(super) fn has_arguments(words: &[Argument]) -> bool {
    words.iter().filter_map(|word| word.text.strip_prefix("--")).any(|name| {
        let name = name.split('=').next().unwrap_or(name).replace('-', "_");
        ARGUMENTS.contains(&name.as_str())
    })
}

/// Whether words are a transformers trainer's, by the program's name or by themselves.
pub(super) fn of_words(program: &str, words: &[Argument]) -> Option<Dialect> {
    let named = named_dialect(program);
    let mut own = 0;
    let mut alone = true;
    let mut megatron = false;
    for word in words {
        let Some(name) = word.text.strip_prefix("--") else { continue };
        let name = name.split('=').next().unwrap_or(name).replace('-', "_");
        if OWN.contains(&name.as_str()) {
            own += 1;
            alone &= COMMON.contains(&name.as_str());
        }
        megatron |= MEGATRON.contains(&name.as_str());
    }
    if megatron {
        return None;
    }
    let own = if alone { 0 } else { own };
    let named = named.or_else(|| cookbook(program, words));
    let has = |key: &str| {
        words.iter().any(|word| word.text.trim_start_matches("--").split('=').next() == Some(key))
    };
    match named {
        Some(dialect) => Some(dialect),
        None if alpaca_lora::is_command(program, words) => Some(Dialect::Transformers),
        None if own >= ENOUGH && has("deepspeed") && DEEPSPEED_CHAT.iter().any(|key| has(key)) => {
            Some(Dialect::DeepSpeedChat)
        }
        // ms-swift's own options behind a program derived from it, whose defaults are its.
        None if own >= ENOUGH && has("split_dataset_ratio") && (has("train_type") || has("tuner_type")) => {
            Some(Dialect::Swift)
        }
        // LLaMA-Factory's own options in a launch script.
        None if own >= ENOUGH && has("finetuning_type") => Some(Dialect::LlamaFactory),
        None if own >= ENOUGH && (has("dataset_name") || has("use_peft")) && has("max_length") => {
            Some(Dialect::Trl)
        }
        None if own >= ENOUGH => Some(Dialect::Transformers),
        None => None,
    }
}

/// Whose keys a settings file holds that a command names, and whether the command's program says so; `None` if the program
/// or its words are none that take such a file. `file` is what the file was recognized as.
pub(super) fn beneath(file: Dialect, command: &Command<'_>) -> Option<(Dialect, bool)> {
    if let Some(named) = named_dialect(command.program) {
        return Some((named, true));
    }
    let is_megatron = |word: &Argument| {
        let name = word.text.strip_prefix("--").unwrap_or_default();
        MEGATRON.contains(&name.split('=').next().unwrap_or(name).replace('-', "_").as_str())
    };
    let other = matches!(
        of_words(command.program, command.words),
        Some(Dialect::DeepSpeedChat | Dialect::LlamaCookbook | Dialect::OpenInstruct)
    );
    (!other && !command.words.iter().any(is_megatron)).then_some((file, false))
}
