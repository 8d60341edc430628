//! Programs derived from verl whose own keys create different samples per prompt than verl does, or train
//! another model in addition to the policy. Their effect on lengths, counts and models is specific to each, so
//! each stops the verdict by name.
//!
//! Sources: Search-R1 (`search_r1/llm_agent/generation.py`, `verl/trainer/ppo/ray_trainer.py`: prompts repeated
//! `n_agent` times, contexts of `max_start_length` and `max_prompt_length` together), verl-agent and OpenManus-RL
//! (`env.*`: each turn in an environment is a sample), MemAgent (`recurrent.*`), TTRL
//! (`verl/trainer/ppo/ray_trainer.py:_select_top_k_per_prompt`), PRIME (`recipe/prime/prime_dp_rm.py`), agent-lightning
//! (`agentlightning/verl/trainer.py`), Minimal-RL (`verl/trainer/ppo/core_algos.py:compute_raft_outcome_advantage`).

use super::super::leaves::{Leaf, Leaves};
use super::common::lack;
use crate::Effect;

/// Values that switch a key off.
const OFF: &[&str] = &["", "null", "none", "None", "false", "False", "0"];

/// Key prefixes, values at which they change nothing in addition to [`OFF`], and what they do.
const OWN: &[(&str, &[&str], &str)] = &[
    (
        "actor_rollout_ref.rollout.n_agent",
        &[],
        "Search-R1's multi-turn search: n_agent rollouts per prompt, with contexts longer than prompt and response",
    ),
    (
        "trainer.do_search",
        &[],
        "Search-R1's multi-turn search, with contexts longer than prompt and response",
    ),
    ("env.env_name", &[], "multi-turn trajectories in which every turn is a separate sample"),
    ("env.max_steps", &["1"], "multi-turn trajectories in which every turn is a separate sample"),
    ("recurrent.enable", &[], "several conversations per prompt (MemAgent), each a separate sample"),
    (
        "actor_rollout_ref.rollout.do_vote",
        &[],
        "rollouts for majority voting (TTRL), of which only a part is trained on",
    ),
    ("reward_model.model.update", &[], "a reward model trained with the policy (PRIME)"),
    // PRIME's own repository, where `rm_type` selects it.
    ("reward_model.prime_model.update", &["none"], "a reward model trained with the policy (PRIME)"),
    ("agentlightning.trace_aggregator.", &[], "samples built from agent traces (agent-lightning)"),
];

/// Stops the verdict at the first key of each program that is not switched off.
pub(super) fn stop(leaves: &mut Leaves<'_>) {
    for (start, harmless, what) in OWN {
        let on = |leaf: &&Leaf| {
            leaf.path.starts_with(start)
                && !OFF.contains(&leaf.value.as_str())
                && !harmless.contains(&leaf.value.as_str())
        };
        if let Some(leaf) = leaves.all().iter().find(on) {
            leaf.used.set(true);
            lack(leaves, leaf, Effect::Memory, what);
        }
    }
}
