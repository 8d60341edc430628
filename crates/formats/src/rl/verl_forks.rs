//! Programs derived from verl whose own keys create different samples per prompt than verl does, or train
//! another model in addition to the policy. Their effect on lengths, counts and models is specific to each, so
//! each stops the verdict by name.
//!
//! Search-R1's samples are known where its script states its search; its keys elsewhere stop the verdict.
//!
//! Sources: Search-R1 ([`search`]), verl-agent and OpenManus-RL
//! (`env.*`: each turn in an environment is a sample), MemAgent (`recurrent.*`), TTRL
//! (`verl/trainer/ppo/ray_trainer.py:_select_top_k_per_prompt`), PRIME (`recipe/prime/prime_dp_rm.py`), agent-lightning
//! (`agentlightning/verl/trainer.py`), Minimal-RL (`verl/trainer/ppo/core_algos.py:compute_raft_outcome_advantage`).

use super::super::leaves::{Leaf, Leaves};
use super::common::lack;
use crate::{Effect, Origin};
use shardscope_plan::Field;

/// What Search-R1 makes of a prompt: rollouts that call a search engine, whose answers become part of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Search {
    /// Rollouts of a prompt.
    pub(super) agents: u64,
    /// The longest prompt of a sample.
    start: u64,
    /// The longest response of a sample, with what was found.
    pub(super) response: u64,
    /// The longest context of one turn with its own response.
    pub(super) turn: u64,
}

impl Search {
    /// The longest sample.
    pub(super) fn sample(self) -> u64 {
        self.start.saturating_add(self.response)
    }

    /// States how many rollouts there are of a prompt, and returns it; a mini-batch counts rollouts
    /// (`fsdp_workers.py:__init__`).
    pub(super) fn state(self, leaves: &mut Leaves<'_>) -> u64 {
        leaves.reading.keep(&|found| found.field != Field::RolloutsPerPrompt);
        let why = "n_agent rollouts of a prompt";
        leaves.state(Field::RolloutsPerPrompt, &self.agents.to_string(), Origin::Derived, why);
        self.agents
    }
}

/// The defaults of `verl/trainer/config/ppo_trainer.yaml` in Search-R1: tokens of a prompt, a response, the start of a
/// sample and what a search returns, and turns.
const SIZES: [(&str, u64); 5] = [
    ("data.max_prompt_length", 512),
    ("data.max_response_length", 512),
    ("data.max_start_length", 256),
    ("data.max_obs_length", 512),
    ("max_turns", 10),
];

/// The search of a Search-R1 script, all of which name their retriever. A sample begins with the last `max_start_length`
/// tokens of a prompt (`verl/trainer/ppo/ray_trainer.py:fit`). Each turn adds a response and what the search returns, and
/// a last response follows; all together are cut to `max_prompt_length` (`search_r1/llm_agent/generation.py:run_llm_loop,
/// _update_right_side, _process_next_obs`), and so is the context of the next turn (`_update_rolling_state`), of which
/// the rollout worker takes log-probabilities as well (`verl/workers/fsdp_workers.py:generate_sequences`). With several
/// rollouts of one context (`rollout.n`) its tensors would not fit each other.
pub(super) fn search(leaves: &Leaves<'_>) -> Option<Search> {
    let searches = leaves.all().iter().any(|leaf| leaf.path.starts_with("retriever."))
        && ["data.max_start_length", "data.max_obs_length"].iter().all(|path| leaves.has(path))
        && leaves.flag("do_search") != Some(false)
        && leaves.whole("actor_rollout_ref.rollout.n").unwrap_or(1) == 1;
    if !searches {
        return None;
    }
    let mut sizes = [0; SIZES.len()];
    for (size, (path, own)) in sizes.iter_mut().zip(SIZES) {
        *size = if leaves.has(path) { leaves.whole(path)? } else { own };
    }
    let [prompt, response, start, found, turns] = sizes;
    let added = response.saturating_add(found).saturating_mul(turns).saturating_add(response);
    let agents = match leaves.get("actor_rollout_ref.rollout.n_agent") {
        Some(leaf) => leaf.whole()?,
        None => 1,
    };
    Some(Search {
        agents,
        start: start.min(prompt),
        response: added.min(prompt),
        turn: prompt.saturating_add(response),
    })
}

/// Whether the program is that of Skywork-OR1, made of verl 0.2, which starts no reference (`verl/trainer/main_ppo.py` of SkyworkAI/Skywork-OR1
/// at 64e96af, whose `role_worker_mapping` leaves `Role.RefPolicy` out). Of programs that have adaptive entropies it alone samples by
/// rejection.
pub(super) fn has_no_reference(leaves: &Leaves<'_>) -> bool {
    let has = |start: &str| leaves.all().iter().any(|leaf| leaf.path.starts_with(start));
    has("actor_rollout_ref.actor.adaptive_entropy.") && has("trainer.rejection_sample")
}

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

/// Keys of verl-tool's agents (`verl_tool/agent_loop/verltool_agent_loop.py:AgentActorConfig`), which decide how a sample
/// comes about, and not how long it may get.
const OF_AGENTS: &str = "enable_agent max_turns val_max_turns min_turns max_obs_length max_action_length \
    additional_eos_token_ids tool_server_url mask_observations action_stop_tokens enable_mtrl mtrl_ \
    mask_overlong_loss truncate_ rolling_with_prompt call_tool_first force_finish_for_last_turn \
    turn_end_token rollout_mode tool_call_ max_concurrent_trajectories";

/// The lengths of its samples, and the data's that they are not above: an agent's responses with what its tools return are
/// padded to `rollout.response_length` (`verl_tool/agent_loop/agent_loop.py:_agent_loop_postprocess`), and until November
/// 2025 to its own limit (`verl_tool/llm_agent/manager.py:_compose_final_output`).
const OF_SAMPLES: [[&str; 2]; 3] = [
    ["actor_rollout_ref.agent.max_prompt_length", "data.max_prompt_length"],
    ["actor_rollout_ref.agent.max_start_length", "data.max_prompt_length"],
    ["actor_rollout_ref.agent.max_response_length", "data.max_response_length"],
];

/// Marks what agents of verl-tool, which have a server for their tools, are told; their samples are known where they are as
/// long as the data's.
fn agents(leaves: &mut Leaves<'_>) {
    if !leaves.has("actor_rollout_ref.agent.tool_server_url") {
        return;
    }
    for name in OF_AGENTS.split(' ') {
        leaves.pass_below(&[&format!("actor_rollout_ref.agent.{name}")]);
    }
    for [own, of_data] in OF_SAMPLES {
        let Some(leaf) = leaves.get(own) else { continue };
        leaf.used.set(true);
        if leaf.whole().is_none() || leaf.whole() != leaves.whole(of_data) {
            lack(leaves, leaf, Effect::Memory, "samples of agents that are not as long as the data's");
        }
    }
}

/// Stops the verdict at the first key of each program that is not switched off.
pub(super) fn stop(leaves: &mut Leaves<'_>) {
    let known: &[&str] = match search(leaves) {
        Some(_) => &["actor_rollout_ref.rollout.n_agent", "max_turns", "do_search"],
        None => &[],
    };
    leaves.pass_below(known);
    agents(leaves);
    for (start, harmless, what) in OWN.iter().filter(|(start, ..)| !known.contains(start)) {
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
