//! The trainers as launch formats.

use super::dialect::Dialect;
use super::grouped::is_grouped;
use super::place::{beneath, has_arguments, named_dialect, of_words};
use super::read::{read, read_beneath, read_words};
use super::train_bash;
use super::{alpaca_lora, causal};
use crate::format::Format;
use crate::reader::{Claim, Command, Reader};
use crate::releases::{Installed, tell_unlifted};
use crate::signs;
use crate::{Argument, Reading};
use shardscope_config_tree::{Node, Tree};

/// A trainer's settings file and command line.
#[derive(Debug)]
pub struct Trainer(pub Dialect);

/// Names that programs give to what ms-swift calls `learning_rate`, `lr_scheduler_type`, `quant_bits`, `adapters` and `dataset`.
const FOREIGN_TO_SWIFT: [&str; 8] = [
    "lr",
    "lr_scheduler",
    "quantize_4bit",
    "load_in_4bit",
    "use_4bit",
    "adapter_path",
    "sft_adapter_path",
    "dataset_path",
];

impl Reader for Trainer {
    fn name(&self) -> &'static str {
        match self.0 {
            Dialect::Transformers => "arguments of transformers' Trainer",
            Dialect::Trl => "a TRL configuration",
            Dialect::LlamaFactory => "a LLaMA-Factory configuration",
            Dialect::Axolotl => "an axolotl configuration",
            Dialect::Swift => "an ms-swift configuration",
            Dialect::OpenInstruct => "open-instruct's arguments",
            Dialect::DeepSpeedChat => "a DeepSpeed-Chat command",
            Dialect::LlamaCookbook => "a llama-cookbook command",
            Dialect::Unsloth | Dialect::UnslothArguments => "an unsloth program",
        }
    }

    fn states_machines(&self) -> &'static str {
        self.0.states_machines()
    }

    /// TRL's files have no such keys but transformers' own (`deepspeed`, `fsdp`); its examples name accelerate's file. open-instruct's
    /// programs have none at all and are started with DeepSpeed's file (`scripts/finetune_with_accelerate_config.sh`).
    fn is_sharded_by_launch(&self) -> bool {
        matches!(self.0, Dialect::Trl | Dialect::OpenInstruct)
    }

    fn about(&self) -> &'static str {
        match self.0 {
            Dialect::Transformers => {
                "arguments of transformers' Trainer, in the command lines of any script that takes them and in settings files, one by one or in groups"
            }
            Dialect::Trl => "TRL: model, batch, lengths, adapters, precision",
            Dialect::LlamaFactory => {
                "LLaMA-Factory: method, adapters, batch, lengths, DeepSpeed's file by name"
            }
            Dialect::Axolotl => "axolotl: model, adapters, quantization, batch, FSDP or DeepSpeed",
            Dialect::Swift => "ms-swift: files and `swift sft`",
            Dialect::LlamaCookbook => "llama-cookbook (llama-recipes): FSDP, adapters, quantization, batch",
            Dialect::Unsloth | Dialect::UnslothArguments => {
                "unsloth: FastLanguageModel, FastModel and FastVisionModel with adapters, in 4 or 16 bits"
            }
            Dialect::DeepSpeedChat => {
                "DeepSpeed-Chat: supervised fine-tuning; its DPO, adapters, reward models and rollouts are not modelled"
            }
            Dialect::OpenInstruct => "open-instruct: supervised fine-tuning and DPO under accelerate",
        }
    }

    fn needs_bases(&self) -> bool {
        // Hydra composes model, precision and adapters of other files into these settings.
        true
    }

    fn recognise(&self, tree: &Tree) -> Option<Claim> {
        let either = |one: &[&str], other: &[&str]| signs::all(tree, one).or_else(|| signs::all(tree, other));
        match self.0 {
            // Options of its own next to options that TRL also has, with different defaults
            // (`open_instruct/finetune.py`).
            Dialect::OpenInstruct => either(
                &["model_name_or_path", "with_tracking"],
                &["model_name_or_path", "use_slow_tokenizer"],
            ),
            // The Trainer's arguments in a file for a custom program, with a weak claim because half of them
            // are also Megatron's (`bf16`, `seed`); not those of a training with rollouts, whose model and
            // reference the program chooses.
            Dialect::Transformers => either(
                &["per_device_train_batch_size", "gradient_accumulation_steps"],
                &["output_dir", "num_train_epochs"],
            )
            .filter(|_| signs::any(tree, &["num_generations", "max_completion_length"]).is_none())
            .or_else(|| tree.documents.first().filter(|root| is_grouped(root)).map(|_| Claim::Certain))
            .map(|_| Claim::Shared(usize::MAX)),
            Dialect::DeepSpeedChat
            | Dialect::LlamaCookbook
            | Dialect::Unsloth
            | Dialect::UnslothArguments => None,
            Dialect::Trl => either(
                &["model_name_or_path", "per_device_train_batch_size"],
                &["model_name_or_path", "learning_rate"],
            )
            // A part of a program's settings (GRPO), half of which are also Megatron's. Without a weight for the
            // reference the program chooses whether there is one.
            .or_else(|| {
                let own = ["per_device_train_batch_size", "num_generations", "max_completion_length", "beta"];
                signs::all(tree, &own)
                    // ms-swift's own key, beside which it has the same arguments with other defaults.
                    .filter(|_| signs::any(tree, &["rlhf_type"]).is_none())
            }),
            Dialect::LlamaFactory => {
                either(&["model_name_or_path", "finetuning_type"], &["model_name_or_path", "cutoff_len"])
                    .or_else(|| {
                        either(
                            &["model_name_or_path", "template", "infer_backend"],
                            &["model_name_or_path", "export_dir"],
                        )
                    })
                    .or_else(|| either(&["model", "model_class"], &["model", "peft_config", "train_dataset"]))
            }
            Dialect::Axolotl => either(&["base_model", "micro_batch_size"], &["base_model", "sequence_len"]),
            Dialect::Swift => {
                either(&["model", "per_device_train_batch_size"], &["model", "tuner_type", "learning_rate"])
                    // Its parser refuses keys that it does not have (`swift/pipelines/base.py:_parse_args`): these are
                    // programs' own, whose `model` is theirs as well.
                    .filter(|_| signs::any(tree, &FOREIGN_TO_SWIFT).is_none())
            }
        }
    }

    fn read(&self, root: &Node) -> Reading {
        read(self.0, root, Installed::default())
    }

    /// LLaMA-Factory's length and attention changed in 0.9.1 and 0.9, axolotl's LoRA kernels in 0.9.1.
    fn modelled_since(&self, installed: Installed) -> Option<(&'static str, [u64; 2], [u64; 2])> {
        match self.0 {
            Dialect::LlamaFactory => Some(("llamafactory", installed.llamafactory?, [0, 9])),
            Dialect::Axolotl => Some(("axolotl", installed.axolotl?, [0, 9])),
            _ => None,
        }
    }

    fn date(&self, reading: &mut Reading, installed: Installed) {
        tell_unlifted(reading, installed);
    }

    fn read_installed(&self, root: &Node, installed: Installed) -> Reading {
        let mut reading = read(self.0, root, installed);
        causal::tell(self.0, "", &mut reading);
        reading
    }

    fn read_beneath(&self, root: &Node, command: &Command<'_>) -> Option<(Reading, Vec<Argument>)> {
        let (dialect, by_program) = beneath(self.0, command)?;
        Some((read_beneath(dialect, root, command.words, by_program, command.installed), Vec::new()))
    }

    fn claims(&self, command: &Command<'_>) -> Option<Claim> {
        // These are recognized only by their programs; for the others the words are searched.
        let by_name = matches!(self.0, Dialect::Axolotl | Dialect::OpenInstruct);
        if command.is_megatron || by_name && named_dialect(command.program) != Some(self.0) {
            return None;
        }
        let is_own = of_words(command.program, command.words) == Some(self.0);
        let certain = self.0 != Dialect::Transformers
            || has_arguments(command.words)
            || alpaca_lora::is_command(command.program, command.words);
        is_own.then_some(if certain { Claim::Certain } else { Claim::Shared(usize::MAX) })
    }

    fn read_command(&self, command: &Command<'_>) -> Reading {
        if self.0 == Dialect::LlamaFactory && train_bash::is_program(command.program) {
            return train_bash::read(command.words);
        }
        let mut reading = read_words(self.0, command.words, command.installed);
        causal::tell(self.0, command.program, &mut reading);
        reading
    }

    fn read_words(&self, words: &[Argument]) -> Reading {
        read_words(self.0, words, Installed::default())
    }
}

/// The format of the settings files that a trainer's own program takes.
#[must_use]
pub fn of_trainer(program: &str) -> Option<Format> {
    Some(Format::new(match named_dialect(program)? {
        Dialect::LlamaFactory => &Trainer(Dialect::LlamaFactory),
        Dialect::Axolotl => &Trainer(Dialect::Axolotl),
        Dialect::Swift => &Trainer(Dialect::Swift),
        Dialect::Trl => &Trainer(Dialect::Trl),
        _ => return None,
    }))
}
