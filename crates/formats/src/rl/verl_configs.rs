//! Configurations in verl's own repository, selected by Hydra's `--config-name`, and how each differs from verl's
//! defaults (`verl/trainer/config`, `examples/sglang_multiturn/config`).

use super::super::leaves::{Leaf, Leaves};
use super::super::scalars::Scalars;
use crate::Argument;
use shardscope_bash::base_name;

/// Settings of a configuration.
type Stated = &'static [(&'static str, &'static str)];

const PLAIN: Stated = &[];
const MEGATRON: Stated = &[("actor_rollout_ref.actor.strategy", "megatron")];
const TURNS: Stated = &[
    ("data.max_prompt_length", "1024"),
    ("data.max_response_length", "1024"),
    ("data.train_batch_size", "256"),
    ("actor_rollout_ref.rollout.name", "sglang"),
];

/// The same with images, and with prompts and responses twice as long.
const IMAGES: Stated = &[
    ("data.max_prompt_length", "2048"),
    ("data.max_response_length", "2048"),
    ("data.train_batch_size", "256"),
    ("actor_rollout_ref.rollout.name", "sglang"),
];

const KNOWN: [(&str, [Stated; 2]); 13] = [
    ("ppo_trainer", [PLAIN, PLAIN]),
    ("ppo_megatron_trainer", [MEGATRON, PLAIN]),
    ("sft_trainer", [PLAIN, PLAIN]),
    ("sft_trainer_engine", [PLAIN, PLAIN]),
    ("gsm8k_multiturn_grpo", [TURNS, PLAIN]),
    ("gsm8k_multiturn_grpo_server", [TURNS, PLAIN]),
    ("gsm8k_multiturn_grpo_w_interaction", [TURNS, PLAIN]),
    ("gsm8k_multiturn_megatron_grpo", [TURNS, MEGATRON]),
    ("retool_multiturn_grpo", [TURNS, PLAIN]),
    ("search_multiturn_grpo", [TURNS, PLAIN]),
    ("search_multiturn_grpo_one_step_off", [TURNS, PLAIN]),
    ("geo3k_multiturn_grpo", [IMAGES, PLAIN]),
    ("geo3k_multiturn_megatron_grpo", [IMAGES, MEGATRON]),
];

/// Configurations on which recipes build (Hydra's `defaults`); only verl's own.
const BASES: [&str; 2] = ["ppo_trainer", "ppo_megatron_trainer"];

/// Whether a file that a configuration builds on is one of verl's, by its name.
pub(super) fn is_base(file: &str) -> bool {
    BASES.contains(&file.trim_end_matches(".yaml"))
}

/// The settings of such a file that differ from verl's defaults.
pub(super) fn of_base(file: &str) -> Vec<Leaf> {
    let known = is_base(file).then(|| stated(file)).flatten();
    let mut scalars = Scalars::default();
    for (path, value) in known.into_iter().flatten().flatten() {
        scalars.push(path, value, None, None);
    }
    scalars.all().to_vec()
}

/// Files of verl's own that its configurations are composed of (`defaults: - critic@critic: dp_critic`), whose settings are
/// its defaults.
const PARTS: [&str; 27] = [
    "distillation",
    "dp",
    "legacy_reward_impl",
    "megatron",
    "reward",
    "transfer_queue",
    "reward_manager@reward_manager",
    "_self_",
    "actor",
    "dp_actor",
    "megatron_actor",
    "critic",
    "dp_critic",
    "megatron_critic",
    "ref",
    "dp_ref",
    "megatron_ref",
    "rollout",
    "hf_model",
    "legacy_data",
    "reward_model",
    "dp_reward_model",
    "megatron_reward_model",
    "dp_reward_loop",
    "megatron_reward_loop",
    "rollout_correction",
    "npu_profile",
];

/// Reads a list of such files, and returns whether it takes Megatron's actor.
pub(super) fn composed(leaves: &Leaves<'_>) -> bool {
    let parts = || leaves.all().iter().filter(|leaf| leaf.path.starts_with("defaults."));
    for leaf in parts().filter(|leaf| PARTS.contains(&leaf.value.as_str())) {
        leaf.used.set(true);
    }
    // Since 0.8 a part of its own says it (`model_engine: megatron`, `override model_engine: megatron`).
    parts().any(|leaf| {
        leaf.value == "megatron_actor" || leaf.value == "megatron" && leaf.path.ends_with("model_engine")
    })
}

/// Whether a configuration, with or without a file extension, is one of verl's own.
pub fn is_known(name: &str) -> bool {
    stated(name).is_some()
}

fn stated(name: &str) -> Option<[Stated; 2]> {
    let name = base_name(name).trim_end_matches(".yaml");
    KNOWN.iter().find(|(known, _)| *known == name).map(|(_, stated)| *stated)
}

/// The configuration that a command names (Hydra's `--config-name`).
pub fn named(words: &[Argument]) -> Option<&str> {
    words.iter().enumerate().find_map(|(at, word)| {
        let rest = word.text.strip_prefix("--config-name")?;
        rest.strip_prefix('=').or_else(|| words.get(at + 1).map(|next| next.text.as_str()))
    })
}

/// The settings of a command, over those of the configuration that it names.
pub(super) fn scalars(words: &[Argument]) -> Scalars {
    let mut scalars = Scalars::default();
    for (path, value) in named(words).and_then(stated).into_iter().flatten().flatten() {
        scalars.push(path, value, None, None);
    }
    // The engine since verl 0.8, and the loop of Search-R1.
    scalars.extend(Scalars::of_words_under(words, &["model_engine", "max_turns", "do_search"]));
    scalars
}
