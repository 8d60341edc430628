//! Files that verl's words build on (`--config-name`): its own are known by name, others are to be pasted.

use super::super::leaves::Leaves;
use super::common::{defaults, lack};
use super::verl_megatron::VERL;
use crate::Effect;
use shardscope_plan::Field;

/// The option, without its dashes, in both of Hydra's spellings.
pub(super) const OPTIONS: [&str; 2] = ["config-name", "config_name"];

/// Files whose keys are the defaults that are known here (`verl/trainer/config`).
const OWN: [&str; 4] = ["ppo_trainer", "ppo_megatron_trainer", "sft_trainer", "sft_trainer_engine"];
/// Files that put rollouts of several turns on top, with prompts and responses of so many tokens together
/// (`examples/sglang_multiturn/config`).
const TURNS: [(&str, &str); 9] = [
    ("gsm8k_multiturn_grpo", "2048"),
    ("gsm8k_multiturn_grpo_server", "2048"),
    ("gsm8k_multiturn_grpo_w_interaction", "2048"),
    ("gsm8k_multiturn_megatron_grpo", "2048"),
    ("retool_multiturn_grpo", "2048"),
    ("search_multiturn_grpo", "2048"),
    ("search_multiturn_grpo_one_step_off", "2048"),
    ("geo3k_multiturn_grpo", "4096"),
    ("geo3k_multiturn_megatron_grpo", "4096"),
];

/// Takes what the named file sets, or stops at it; before anything else is read.
pub(super) fn read(leaves: &mut Leaves<'_>) {
    let Some(leaf) = leaves.first(&OPTIONS) else { return };
    let name = leaf.value.rsplit('/').next().unwrap_or_default().trim_end_matches(".yaml");
    if leaf.hole.is_none() && OWN.contains(&name) {
        return;
    }
    let Some((_, length)) = TURNS.iter().find(|(known, _)| *known == name) else {
        let what = "what this file sets, on which the words build; paste it beside them";
        return lack(leaves, leaf, Effect::Memory, what);
    };
    defaults(leaves, VERL, &[(Field::RolloutEngine, "sglang"), (Field::RolloutPrompts, "256")]);
    let stated = ["data.max_prompt_length", "data.max_response_length"];
    if stated.iter().all(|path| !leaves.has(path)) {
        let values = [(Field::RolloutLength, *length), (Field::SeqLength, *length)];
        let dynamic = leaves.flag("actor_rollout_ref.actor.use_dynamic_bsz") == Some(true);
        defaults(leaves, VERL, if dynamic { &values[..1] } else { &values });
    }
}
