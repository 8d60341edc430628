//! `tune run RECIPE --config NAME key=value …`: a configuration by name or file, and the changes that the words make to
//! it (`torchtune/_cli/run.py`, `torchtune/config/_parse.py`, `torchtune/config/_utils.py:_merge_yaml_and_cli_args`).

use super::settings::TORCHTUNE;
use super::shipped::shipped;
use crate::leaves::Scalars;
use crate::reader::{Claim, Command, Reader};
use crate::{Argument, Reading};
use shardscope_bash::base_name;
use shardscope_config_tree::{Node, Tree};
use shardscope_plan::Field;

/// The recipes that train (`torchtune/_recipe_registry.py`), by program name.
const RECIPES: [&str; 15] = [
    "full_finetune_single_device",
    "full_finetune_distributed",
    "lora_finetune_single_device",
    "lora_finetune_distributed",
    "lora_dpo_single_device",
    "lora_dpo_distributed",
    "full_dpo_distributed",
    "ppo_full_finetune_single_device",
    "lora_finetune_distributed_multi_dataset",
    "early_exit_finetune_distributed",
    "qat_distributed",
    "qat_lora_finetune_distributed",
    "knowledge_distillation_single_device",
    "knowledge_distillation_distributed",
    "grpo_full_finetune_distributed",
];

/// Whether a program, or the argument of `tune run`, is a torchtune recipe that trains.
pub fn is_recipe(program: &str) -> bool {
    let name = base_name(program);
    RECIPES.contains(&name.strip_suffix(".py").unwrap_or(name))
}

/// torchtune: its settings file, and the commands of its recipes.
#[derive(Debug)]
pub(crate) struct Torchtune;

impl Reader for Torchtune {
    fn name(&self) -> &'static str {
        TORCHTUNE.name()
    }

    fn states_machines(&self) -> &'static str {
        "add the launch line (tune run --nnodes 2 --nproc_per_node 8 RECIPE --config …)"
    }

    fn about(&self) -> &'static str {
        TORCHTUNE.about()
    }

    fn recognise(&self, tree: &Tree) -> Option<Claim> {
        TORCHTUNE.recognise(tree)
    }

    fn read(&self, root: &Node) -> Reading {
        TORCHTUNE.read(root)
    }

    fn read_with_words(&self, root: &Node, words: &[Argument]) -> Option<Reading> {
        configuration(words)?;
        let mut scalars = Scalars::from_node(root);
        changed(&mut scalars, words);
        Some(TORCHTUNE.read_leaves(&scalars))
    }

    fn claims(&self, command: &Command<'_>) -> Option<Claim> {
        is_recipe(command.program).then_some(Claim::Certain)
    }

    fn read_words(&self, words: &[Argument]) -> Reading {
        let named = configuration(words).map(|word| shipped(&word.text));
        let mut scalars = Scalars::from_leaves(named.unwrap_or_default());
        changed(&mut scalars, words);
        TORCHTUNE.read_leaves(&scalars)
    }

    fn keys(&self) -> Vec<(&'static str, Field)> {
        TORCHTUNE.keys()
    }
}

/// The word that names the configuration, which every recipe requires.
fn configuration(words: &[Argument]) -> Option<&Argument> {
    let at = words.iter().position(|word| word.text == "--config")?;
    words.get(at + 1)
}

/// Applies the words to the settings: `key=value` sets one, `~key` removes it.
fn changed(scalars: &mut Scalars, words: &[Argument]) {
    for word in words {
        if let Some(path) = word.text.strip_prefix('~') {
            scalars.take_away(path);
        }
    }
    let own: Vec<Argument> =
        words.iter().filter(|word| !word.text.starts_with('-') && word.text.contains('=')).cloned().collect();
    // Every key counts, including those without a dot.
    scalars.extend(Scalars::of_words_under(&own, &[""]));
}
