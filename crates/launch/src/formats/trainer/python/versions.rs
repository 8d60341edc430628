//! What the arguments of a call tell of the libraries behind it: which release of transformers has them, and whose defaults count.

use super::super::dialect::Dialect;
use super::super::fused_head::OF_FOUR;
use crate::formats::scalars::Leaf;
use crate::{Found, Origin, Reading};
use shardscope_plan::Field;

/// Whether a call can only be one of transformers 4: of its arguments, or of a trainer that takes the tokenizer by the name it had until
/// then (`trainer.py:Trainer.__init__`, 5.23, has `processing_class` alone; so have TRL's trainers).
pub(super) fn is_of_four<'a>(call: &str, arguments: impl Fn() -> &'a str) -> bool {
    let given = |arguments: &str, key: &str| {
        arguments.match_indices(key).any(|(at, _)| {
            let before = arguments.get(..at).unwrap_or_default().trim_end();
            let behind = arguments.get(at + key.len()..).unwrap_or_default().trim_start();
            let line = before.rsplit('\n').next().unwrap_or_default();
            before.ends_with(['(', ',']) && !line.contains('#') && behind.starts_with('=')
                || before.ends_with('\n') && behind.starts_with('=')
        })
    };
    match call {
        "TrainingArguments" | "Seq2SeqTrainingArguments" => {
            let arguments = arguments();
            OF_FOUR.iter().any(|key| given(arguments, key))
        }
        _ if call.ends_with("Trainer") => given(arguments(), "tokenizer"),
        _ => false,
    }
}

/// The format of weights that transformers 4 loads where its program names none: `from_pretrained` takes PyTorch's default type
/// (`modeling_utils.py`, 4.46: `torch_dtype`). Of quantized ones the rest is cast elsewhere, and DeepSpeed's engine casts all.
pub(super) fn loads_in_fp32(reading: &mut Reading) {
    let by_default = |found: &Found| found.field == Field::ParamsDtype && found.origin == Origin::Default;
    let quantized = !matches!(reading.value(Field::BaseQuantization), None | Some("" | "none"));
    let engine = reading.value(Field::DataParallelEngine) == Some("deepspeed");
    if !quantized && !engine && reading.found.iter().any(by_default) {
        let note = "transformers 4, whose arguments these are, loads models in fp32 by default";
        reading.take(Found::new(Field::ParamsDtype, "fp32", Origin::Default).note(note));
    }
}

/// Where TRL's trainer is given transformers' own arguments it fills its own in from them (`sft_trainer.py`: `SFTConfig(**args.to_dict())`),
/// so that their defaults count; and `LoraConfig` has PEFT's (`peft/tuners/lora/config.py`), not those of TRL's command line.
pub(super) fn defaults(
    dialect: Dialect,
    plain: bool,
    adapters: bool,
    stated: &dyn Fn(&str) -> bool,
) -> Vec<Leaf> {
    let mut leaves = Vec::new();
    let mut state = |key: &str, value: &str| {
        if !stated(key) {
            leaves.push(Leaf { path: key.to_owned(), value: value.to_owned(), ..Leaf::default() });
        }
    };
    if dialect == Dialect::Trl && plain {
        state("gradient_checkpointing", "false");
        state("bf16", "false");
    }
    if dialect == Dialect::Trl && adapters {
        state("r", "8");
        state("lora_alpha", "8");
        state("lora_dropout", "0");
    }
    leaves
}

#[cfg(test)]
mod tests {
    use super::is_of_four;

    #[test]
    fn arguments_that_the_next_release_refuses_tell_the_release() {
        assert!(is_of_four("TrainingArguments", || "(output_dir='a',\n    evaluation_strategy=\"no\")"));
        assert!(is_of_four("TrainingArguments", || "(logging_dir='a')"));
        assert!(!is_of_four("TrainingArguments", || "(eval_strategy='no', report_logging_dir=1)"));
        assert!(!is_of_four("TrainingArguments", || "(a=1, # evaluation_strategy='no'\n b=2)"));
        assert!(is_of_four("Trainer", || "(model=model, tokenizer=tokenizer)"));
        assert!(!is_of_four("Trainer", || "(model=model, processing_class=tokenizer)"));
        assert!(!is_of_four("pipeline", || "(model=model, tokenizer=tokenizer)"));
    }
}
