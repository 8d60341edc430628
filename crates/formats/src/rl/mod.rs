//! Frameworks for reinforcement learning: the training engine's plan, the batch algebra, and the rollout engine. One
//! reader per framework, for words with dotted keys or for a settings file.

mod areal;
mod common;
mod easy_r1;
mod mindspeed;
mod nemo;
mod nemo_bases;
mod nemo_megatron;
mod nemo_rollout;
mod open_instruct;
mod openrlhf;
mod openrlhf_names;
mod roll;
mod skyrl;
mod skyrl_engine;
mod verl;
mod verl_beside;
mod verl_builders;
mod verl_configs;
mod verl_early;
mod verl_forks;
mod verl_idle;
mod verl_keys;
mod verl_megatron;
mod verl_rounds;
mod verl_scored;
mod verl_sft;
mod verl_sft_early;

pub use easy_r1::{configuration as configuration_of_easy_r1, is_known as is_known_to_easy_r1};
pub use nemo_bases::TABLE as NEMO_RL;
pub use verl_configs::{is_known as is_known_to_verl, named as configuration_of_verl};
pub(crate) use verl_sft::starts_workers;

use super::beneath::overridden;
use super::leaves::{Leaves, Scalars};
use super::reader::{Claim, Command, Reader};
use super::{bases, dotted, signs};
use crate::releases::Installed;
use crate::{Argument, Reading};
use shardscope_config_tree::{Node, Tree};
use shardscope_source::Span;

/// A framework with keys of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RlFormat {
    /// verl's `main_ppo`.
    Verl,
    /// verl's supervised trainer.
    VerlSft,
    /// OpenRLHF.
    OpenRlhf,
    /// NeMo-RL.
    NemoRl,
    /// MindSpeed-RL.
    MindSpeedRl,
    /// open-instruct.
    OpenInstruct,
    /// SkyRL.
    SkyRl,
    /// ROLL.
    Roll,
    /// AReaL.
    Areal,
    /// EasyR1.
    EasyR1,
}

/// Most files that a recipe directly builds on; real ones name one or two.
const MAX_BASES: usize = 8;

/// Keys of verl's supervised trainer; no other command has this combination.
const SFT: &[&str] = &[
    "model.partial_pretrain",
    "data.micro_batch_size_per_gpu",
    "optim.lr",
    "data.multiturn",
    "data.train_batch_size",
];
/// Key prefixes of OpenRLHF.
const OPEN: &[&str] = &[
    "ds.", "ckpt.", "algo.", "vllm.", "rollout.", "actor.", "ref.", "reward.", "critic.", "data.", "train.",
    "adam.", "eval.",
];
/// Keys that only OpenRLHF has.
const OPEN_OWN: &[&str] = &["ds.", "ckpt.output_dir", "algo.", "vllm.", "rollout.", "actor.num_"];

impl RlFormat {
    /// Key prefixes in its commands.
    const fn first_keys(self) -> &'static [&'static str] {
        match self {
            Self::Verl => &["actor_rollout_ref.", "critic.", "reward_model."],
            Self::VerlSft => SFT,
            Self::OpenRlhf => OPEN,
            Self::SkyRl => skyrl::FIRST,
            Self::EasyR1 => &["worker."],
            Self::NemoRl | Self::MindSpeedRl | Self::OpenInstruct | Self::Roll | Self::Areal => &[],
        }
    }
}

impl Reader for RlFormat {
    fn name(&self) -> &'static str {
        match self {
            Self::Verl => "a verl configuration",
            Self::VerlSft => "a configuration of verl's supervised trainer",
            Self::OpenRlhf => "an OpenRLHF command",
            Self::NemoRl => "a NeMo-RL configuration",
            Self::MindSpeedRl => "a MindSpeed-RL configuration",
            Self::OpenInstruct => "a GRPO command of open-instruct",
            Self::SkyRl => "a SkyRL command",
            Self::Roll => "a configuration of ROLL",
            Self::Areal => "a configuration of AReaL",
            Self::EasyR1 => "a configuration of EasyR1",
        }
    }

    fn about(&self) -> &'static str {
        match self {
            Self::Verl => {
                "verl: the actor under FSDP or Megatron, its batch algebra, the rollout engine, reference and critic"
            }
            Self::VerlSft => "verl's supervised trainer: model, batch, FSDP",
            Self::OpenRlhf => {
                "OpenRLHF: supervised fine-tuning, DPO and PPO under DeepSpeed, vLLM on the same or on separate accelerators"
            }
            Self::NemoRl => "NeMo-RL: the policy under DTensor or Megatron, vLLM; its own base files by name",
            Self::MindSpeedRl => "MindSpeed-RL: Megatron's flags as keys, vLLM-Ascend",
            Self::OpenInstruct => "open-instruct's GRPO: learners under DeepSpeed, vLLM apart or on one GPU",
            Self::SkyRl => {
                "SkyRL: the policy under FSDP2 or Megatron, vLLM on the same or on separate accelerators; its supervised trainer"
            }
            Self::EasyR1 => "EasyR1: the policy under FSDP by verl's rules, vLLM on the same accelerators",
            Self::Areal => "AReaL: the policy under FSDP2, rollouts apart or on the same accelerators",
            Self::Roll => {
                "ROLL: the policy under Megatron, rollouts on the same or on separate accelerators, supervised fine-tuning"
            }
        }
    }

    fn recognise(&self, tree: &Tree) -> Option<Claim> {
        let both = |others: &[&str]| {
            others.iter().find_map(|other| signs::all(tree, &["defaults", "policy", other]))
        };
        match self {
            // A recipe that changes nothing about the policy builds on one of verl's own configurations.
            Self::Verl => signs::any(tree, &["actor_rollout_ref"]).or_else(|| {
                let root = tree.documents.first()?;
                bases::named(root)
                    .iter()
                    .any(|(file, _)| verl_configs::is_base(file))
                    .then_some(Claim::Certain)
            }),
            Self::EasyR1 => signs::all(tree, &["worker.actor", "worker.rollout"]),
            Self::VerlSft => signs::any(tree, &["model.partial_pretrain"]).or_else(|| {
                signs::all(
                    tree,
                    &["data.micro_batch_size_per_gpu", "data.max_token_len_per_gpu", "engine.strategy"],
                )
            }),
            Self::OpenRlhf | Self::OpenInstruct | Self::SkyRl => None,
            Self::NemoRl => signs::any(tree, &["policy.model_name", "policy.train_global_batch_size"])
                .or_else(|| signs::all(tree, &["defaults", "grpo"]))
                .or_else(|| both(&["cluster", "logger", "checkpointing", "loss_fn"]))
                .or_else(|| signs::builds_on(tree, "defaults", &["cluster", "checkpointing", "data_plane"])),
            Self::MindSpeedRl => signs::all(tree, &["megatron_training", "actor_config"]),
            Self::Areal => areal::SIGNS.iter().find_map(|signs| signs::all(tree, signs)),
            Self::Roll => roll::SIGNS.iter().find_map(|signs| signs::all(tree, signs)),
        }
    }

    fn read(&self, root: &Node) -> Reading {
        if *self == Self::EasyR1 {
            return self.read_scalars(&easy_r1::of_file(root), true);
        }
        let mut known = Vec::new();
        if *self == Self::NemoRl {
            for (file, _) in bases::named(root).into_iter().take(MAX_BASES) {
                known.extend(nemo_bases::leaves(&file));
            }
        }
        if *self == Self::Verl {
            for (file, _) in bases::named(root).into_iter().take(MAX_BASES) {
                known.extend(verl_configs::of_base(&file));
            }
        }
        self.read_scalars(&Scalars::on(known, root), true)
    }

    fn bases(&self, root: &Node) -> Vec<(String, Span)> {
        let mut named = bases::named(root);
        // NeMo-RL's own base files, whose values its reader knows.
        named.retain(|(file, _)| *self != Self::NemoRl || !nemo_bases::knows(file));
        named
    }

    fn needs_bases(&self) -> bool {
        *self == Self::NemoRl
    }

    fn dotted(&self) -> &'static [&'static str] {
        self.first_keys()
    }

    fn claims(&self, command: &Command<'_>) -> Option<Claim> {
        if *self == Self::OpenInstruct {
            return open_instruct::claims(command.program).then_some(Claim::Certain);
        }
        if skyrl::tunes(command.program) {
            return (*self == Self::SkyRl).then_some(Claim::Certain);
        }
        // Its critic has half of the accelerators to itself, whatever its keys say (`examples/split_placement`).
        if *self == Self::Verl && command.program.ends_with("main_ppo_split.py") {
            return None;
        }
        // EasyR1's program, whose other keys are verl's; the file that it names has the rest.
        if command.program == "verl.trainer.main" && easy_r1::configuration(command.words).is_some() {
            return (*self == Self::EasyR1).then_some(Claim::Certain);
        }
        // `verl.trainer.fsdp_sft_trainer`, whose keys other trainers also have.
        if command.program.contains("verl") && command.program.contains("sft_trainer") {
            return (*self == Self::VerlSft).then_some(Claim::Certain);
        }
        if *self == Self::OpenRlhf && openrlhf_names::claims(command.program, command.words) {
            return Some(Claim::Certain);
        }
        // Its generation program (`verl.trainer.main_generation`) has keys with the same names as OpenRLHF's.
        if command.program.starts_with("verl.") && command.program.ends_with(".main_generation") {
            return (*self == Self::Verl).then_some(Claim::Certain);
        }
        let own = if *self == Self::OpenRlhf { OPEN_OWN } else { self.first_keys() };
        let count = dotted::count(command.words, own);
        // `main_ppo` has keys of both verl trainers.
        let enough = if *self == Self::VerlSft { dotted::ENOUGH + 1 } else { dotted::ENOUGH };
        (count >= enough).then_some(Claim::Own(count))
    }

    /// verl's padding changed in 0.7, its CUDA graphs in 0.6 and its rollouts' sequences in 0.9.
    fn modelled_since(&self, installed: Installed) -> Option<(&'static str, [u64; 2], [u64; 2])> {
        (*self == Self::Verl).then_some(("verl", installed.verl?, [0, 8]))
    }

    fn read_command(&self, command: &Command<'_>) -> Reading {
        if *self != Self::VerlSft {
            return self.read_words(command.words);
        }
        let scalars = Scalars::of_words_under(command.words, &["engine"]);
        let mut leaves = Leaves::over(&scalars);
        verl_sft::read(&mut leaves, command.program, false);
        leaves.finish(self.name())
    }

    fn date(&self, reading: &mut Reading, installed: Installed) {
        match self {
            Self::Verl => verl_early::date(reading, installed.verl),
            Self::VerlSft => verl_sft::date(reading, installed.verl),
            _ => {}
        }
    }

    fn read_words(&self, words: &[Argument]) -> Reading {
        let renamed = match self {
            Self::OpenRlhf => openrlhf_names::renamed(words),
            Self::OpenInstruct => Some(super::trainer::words::leaves(words)),
            Self::Verl => Some(verl_configs::scalars(words)),
            // The engine, which a word without a dot selects.
            Self::VerlSft => Some(Scalars::of_words_under(words, &["engine"])),
            Self::EasyR1 => Some(easy_r1::of_words(words)),
            // Keys of its supervised trainer have no group.
            Self::SkyRl => Some(Scalars::of_words_under(words, &[""])),
            _ => None,
        };
        self.read_scalars(&renamed.unwrap_or_else(|| Scalars::of_words(words)), false)
    }

    /// Reads the words together with the file that they override.
    fn read_with_words(&self, root: &Node, words: &[Argument]) -> Option<Reading> {
        if *self != Self::Verl || dotted::count(words, self.first_keys()) < dotted::ENOUGH {
            return None;
        }
        let mut scalars = Scalars::from_node(root);
        scalars.extend(Scalars::of_words(words));
        Some(self.read_scalars(&scalars, true))
    }

    fn read_beneath(&self, root: &Node, command: &Command<'_>) -> Option<(Reading, Vec<Argument>)> {
        let both = match self {
            // Read together with the words that override it, above.
            Self::Verl => None,
            // Its command alone is read over the file that EasyR1 has for it.
            Self::EasyR1 => {
                overridden(root, command.words).or_else(|| Some((root.clone(), command.words.to_vec())))
            }
            _ => overridden(root, command.words),
        };
        both.map(|(patched, left)| (self.read(&patched), left))
    }
}

impl RlFormat {
    /// `is_file`: whether they are those of a settings file.
    fn read_scalars(self, scalars: &Scalars, is_file: bool) -> Reading {
        let mut leaves = Leaves::over(scalars);
        match self {
            Self::Verl => verl::read(&mut leaves),
            Self::VerlSft => verl_sft::read(&mut leaves, "", is_file),
            Self::OpenRlhf => openrlhf::read(&mut leaves),
            Self::NemoRl => nemo::read(&mut leaves),
            Self::MindSpeedRl => mindspeed::read(&mut leaves),
            Self::OpenInstruct => open_instruct::read(&mut leaves),
            Self::SkyRl => skyrl::read(&mut leaves),
            Self::Roll => roll::read(&mut leaves),
            Self::Areal => areal::read(&mut leaves),
            Self::EasyR1 => easy_r1::read(&mut leaves),
        }
        leaves.finish(self.name())
    }
}
