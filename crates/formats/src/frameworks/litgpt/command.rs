//! `litgpt finetune_lora MODEL --train.micro_batch_size 4 …`: the defaults of each command (`litgpt/__main__.py`, the
//! arguments of `setup` in each program, litgpt 0.5.13).

use super::settings::LITGPT;
use crate::leaves::{Leaf, Scalars};
use crate::reader::{Claim, Command, Reader};
use crate::releases::Installed;
use crate::{Argument, Effect, NotModelled, Reading};
use shardscope_config_tree::{Node, Tree};
use shardscope_plan::Field;

/// A command, its program, and that program's defaults.
struct Program {
    commands: &'static [&'static str],
    file: &'static str,
    usual: &'static [(&'static str, &'static str)],
    /// The setting that its positional first word gives.
    first: &'static str,
    /// What is not modelled about it.
    lacking: Option<&'static str>,
}

const ADAPTERS: &str =
    "LLaMA-Adapter: learned prompts in front of the keys of attention (litgpt's `finetune_adapter`)";

const PROGRAMS: [Program; 5] = [
    Program {
        commands: &["finetune", "finetune_lora"],
        file: "litgpt/finetune/lora.py",
        usual: &[
            ("train.global_batch_size", "16"),
            ("train.micro_batch_size", "1"),
            ("devices", "1"),
            ("lora_r", "8"),
            ("lora_alpha", "16"),
            ("lora_dropout", "0.05"),
        ],
        first: "checkpoint_dir",
        lacking: None,
    },
    Program {
        commands: &["finetune_full"],
        file: "litgpt/finetune/full.py",
        usual: &[("train.global_batch_size", "16"), ("train.micro_batch_size", "1"), ("devices", "1")],
        first: "checkpoint_dir",
        lacking: None,
    },
    Program {
        commands: &["finetune_adapter"],
        file: "litgpt/finetune/adapter.py",
        usual: &[],
        first: "checkpoint_dir",
        lacking: Some(ADAPTERS),
    },
    Program {
        commands: &["finetune_adapter_v2"],
        file: "litgpt/finetune/adapter_v2.py",
        usual: &[],
        first: "checkpoint_dir",
        lacking: Some(ADAPTERS),
    },
    Program {
        commands: &["pretrain"],
        file: "litgpt/pretrain.py",
        usual: &[("train.global_batch_size", "512"), ("train.micro_batch_size", "4")],
        first: "model_name",
        lacking: None,
    },
];

/// The program behind a litgpt command that trains.
pub fn program(command: &str) -> Option<&'static str> {
    PROGRAMS.iter().find(|program| program.commands.contains(&command)).map(|program| program.file)
}

/// litgpt: its settings file and its commands.
#[derive(Debug)]
pub(crate) struct Litgpt;

impl Reader for Litgpt {
    fn name(&self) -> &'static str {
        LITGPT.name()
    }

    fn about(&self) -> &'static str {
        LITGPT.about()
    }

    fn recognise(&self, tree: &Tree) -> Option<Claim> {
        LITGPT.recognise(tree)
    }

    fn read(&self, root: &Node) -> Reading {
        LITGPT.read(root)
    }

    fn date(&self, reading: &mut Reading, installed: Installed) {
        super::settings::date(reading, installed);
    }

    fn claims(&self, command: &Command<'_>) -> Option<Claim> {
        behind(command).map(|_| Claim::Certain)
    }

    fn read_command(&self, command: &Command<'_>) -> Reading {
        let Some(program) = behind(command) else { return Reading::default() };
        read_words(program, &Scalars::default(), command)
    }

    fn read_beneath(&self, root: &Node, command: &Command<'_>) -> Option<(Reading, Vec<Argument>)> {
        Some((read_words(behind(command)?, &Scalars::from_node(root), command), Vec::new()))
    }

    fn keys(&self) -> Vec<(&'static str, Field)> {
        LITGPT.keys()
    }
}

/// Reads the words of a command over the keys of the file that they name.
fn read_words(program: &Program, file: &Scalars, command: &Command<'_>) -> Reading {
    let usual = program.usual.iter().map(|(path, value)| Leaf::of_base(program.file, path, value));
    let mut scalars = Scalars::from_leaves(usual.chain(file.all().iter().cloned()).collect());
    if let Some(first) = command.words.first().filter(|word| !word.text.starts_with('-')) {
        scalars.push(program.first, &first.text, first.span, first.hole.clone());
    }
    // Every key counts, including those without a dot.
    scalars.extend(Scalars::of_words_under(command.words, &[""]));
    let mut reading = LITGPT.read_leaves(&scalars);
    if let Some(what) = program.lacking {
        reading.not_modelled.push(NotModelled::of_program(program.file, Effect::Model, what));
    }
    reading
}

/// Whether a program is one of these, which start one process per entry of their `devices`.
pub(crate) fn is_program(program: &str) -> bool {
    PROGRAMS.iter().any(|known| program.ends_with(known.file))
}

/// The program of a command.
fn behind(command: &Command<'_>) -> Option<&'static Program> {
    PROGRAMS.iter().find(|program| command.program.ends_with(program.file))
}

#[cfg(test)]
mod tests {
    use super::Litgpt;
    use crate::Argument;
    use crate::reader::{Command, Reader};
    use crate::releases::Installed;
    use shardscope_plan::Field;

    #[test]
    fn commands_have_their_programs_defaults() {
        let words = Argument::split(
            "meta-llama/Llama-3.2-1B --precision bf16-true --lora_key true --train.micro_batch_size=2",
        );
        let command = Command {
            program: "litgpt/finetune/lora.py",
            words: &words,
            is_megatron: false,
            installed: Installed::default(),
        };
        let reading = Litgpt.read_command(&command);
        for (field, value) in [
            (Field::MicroBatchSize, "2"),
            (Field::GlobalBatchSize, "16"),
            (Field::GpusPerNode, "1"),
            (Field::LoraRank, "8"),
            (Field::LoraTargetModules, "q_proj k_proj v_proj"),
            (Field::HiddenSize, "2048"),
        ] {
            assert_eq!(reading.value(field), Some(value), "{field:?}");
        }
        assert!(reading.not_modelled.is_empty(), "{:?}", reading.not_modelled);
    }
}
