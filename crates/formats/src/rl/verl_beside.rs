//! Models besides verl's policy: reference, critic and reward model, their placement and their own memory.
//! `verl/workers/fsdp_workers.py:CriticWorker, RewardModelWorker`, `verl/trainer/config/{critic,reward_model}`.

use super::super::leaves::{Leaf, Leaves};
use super::common::{lack, own_code};
use super::verl_keys::{ACTOR, at};
use super::verl_megatron::world;
use super::{verl_early, verl_forks};
use crate::{Effect, Origin};
use shardscope_plan::Field;

/// Prefix of the reference's keys.
const REF: &str = "actor_rollout_ref.ref.";

/// Before a rollout under FSDP1, verl gathers the whole model on every rank to take its adapters out, unless it does so layer by
/// layer (`verl/utils/fsdp_utils.py:collect_lora_params`): in fp32 as much as a full model's weights. FSDP2's parameters are
/// gathered one by one.
fn summons(leaves: &mut Leaves<'_>) {
    let second = leaves.text("actor_rollout_ref.actor.strategy") == Some("fsdp2");
    let layered = leaves.flag("actor_rollout_ref.rollout.layered_summon") == Some(true);
    let adapts = |leaf: &&Leaf| leaf.whole().is_some_and(|rank| rank > 0) || leaf.hole.is_some();
    if let Some(leaf) = leaves.get("actor_rollout_ref.model.lora_rank").filter(adapts)
        && !second
        && !layered
    {
        let what = "adapters that verl takes out of FSDP1 without rollout.layered_summon: every rank then holds the whole model";
        lack(leaves, leaf, Effect::Memory, what);
    }
}

/// Models besides the policy.
pub(super) fn beside(leaves: &mut Leaves<'_>, megatron: bool) {
    if !megatron {
        let option = "actor_rollout_ref.model.trust_remote_code";
        own_code(leaves, &["actor_rollout_ref.model.path"], option, false);
        summons(leaves);
    }
    let yes = |leaves: &Leaves<'_>, path: &str| leaves.flag(path) == Some(true);
    let penalised =
        yes(leaves, "actor_rollout_ref.actor.use_kl_loss") || yes(leaves, "algorithm.use_kl_in_reward");
    // verl 0.2 always had a reference, used or not, on the device unless configured otherwise.
    let early = verl_early::sign(leaves).is_some();
    let kept = early && !yes(leaves, &at(REF, "fsdp_config.param_offload"));
    let adapters = leaves.reading.value(Field::LoraRank).is_some();
    let hosted = leaves.flag(&at(REF, "megatron.param_offload"));
    // FSDP's reference model is on the host and gathered layer by layer; with adapters it is the base model itself.
    let (place, note) = match () {
        () if !penalised && !early => ("none", "neither use_kl_loss nor use_kl_in_reward"),
        () if !penalised && verl_forks::has_no_reference(leaves) => {
            ("none", "Skywork-OR1 starts no reference")
        }
        () if adapters => ("none", "the base model with adapters disabled"),
        () if !megatron && kept => ("device", "ref.fsdp_config.param_offload is off"),
        () if !megatron => ("host", "verl's FSDP holds the reference on the host (CPUOffload)"),
        () if hosted == Some(true) => ("host", "ref.megatron.param_offload"),
        // The actor's since November 2025 (#4211).
        () if hosted.is_none() && yes(leaves, &at(ACTOR, "megatron.param_offload")) => {
            ("host", "ref.megatron.param_offload is actor.megatron.param_offload")
        }
        () => ("device", "ref.megatron.param_offload is off"),
    };
    leaves.state(Field::RlReference, place, Origin::Derived, note);
    reward(leaves, megatron);
    let estimator = leaves.text("algorithm.adv_estimator").unwrap_or("gae").to_owned();
    // `recipe/sppo/sppo_ray_trainer.py` has no critic, and no estimator either.
    let none = leaves.has("algorithm.sppo_eta");
    let critic = leaves.flag("critic.enable").unwrap_or(estimator == "gae" && !none);
    if !critic {
        leaves.state(
            Field::RlCritic,
            "none",
            Origin::Derived,
            &match none {
                true => "verl's SPPO has no critic".to_owned(),
                false => format!("the estimator {estimator} has no critic"),
            },
        );
        leaves.pass_below(&["critic."]);
        return;
    }
    let actor = leaves.text("actor_rollout_ref.model.path").map(end).map(str::to_owned);
    if let Some(leaf) =
        leaves.get("critic.model.path").filter(|leaf| Some(end(&leaf.value)) != actor.as_deref())
    {
        shaped(leaves, Field::RlCriticModel, leaf);
    }
    own_critic(leaves, megatron);
    let moved = ["critic.model.fsdp_config.param_offload", "critic.megatron.param_offload"]
        .iter()
        .any(|path| yes(leaves, path))
        && ["critic.model.fsdp_config.optimizer_offload", "critic.megatron.optimizer_offload"]
            .iter()
            .any(|path| yes(leaves, path));
    let (place, note) = if moved {
        ("host", "the critic's weights and states are offloaded to the host when idle")
    } else {
        ("device", "a critic in addition to the policy (the estimator gae)")
    };
    leaves.state(Field::RlCritic, place, Origin::Derived, note);
    leaves.pass_below(&["critic."]);
}

/// The critic's micro-batch, and whether its layers are recomputed: by default as the
/// policy's. Under Megatron it saves less.
fn own_critic(leaves: &mut Leaves<'_>, megatron: bool) {
    let path = "critic.model.enable_gradient_checkpointing";
    let recomputes = leaves.reading.value(Field::GradientCheckpointing) == Some("true");
    if let Some(leaf) = leaves.get(path).filter(|leaf| recomputes && leaf.flag() == Some(false)) {
        if megatron {
            let what = "a critic without the policy's activation checkpointing";
            lack(leaves, leaf, Effect::Memory, what);
        }
        leaves.switch(Field::RlCriticRecompute, false, leaf);
    }
    if megatron {
        return;
    }
    let adapters =
        |leaves: &Leaves<'_>, group: &str| leaves.whole(&format!("{group}.model.lora_rank")).unwrap_or(0);
    if adapters(leaves, "critic") != adapters(leaves, "actor_rollout_ref")
        && let Some(leaf) = leaves.first(&["critic.model.lora_rank", "actor_rollout_ref.model.lora_rank"])
    {
        lack(leaves, leaf, Effect::Memory, "a critic with other adapters than the policy's");
    }
    let shared = leaves.whole("critic.ulysses_sequence_parallel_size").unwrap_or(1);
    let packed = leaves.reading.value(Field::MaxTokensPerGpu).is_some();
    let joined = leaves.flag("critic.model.use_remove_padding") == Some(true);
    let alike =
        shared == leaves.reading.count(Field::ContextParallelSize).unwrap_or(1) && (joined || !packed);
    let stated = leaves.all().iter().find(|leaf| leaf.path.starts_with("critic."));
    if let Some(leaf) = stated.filter(|_| alike && !joined) {
        leaves.switch(Field::RlCriticPadding, true, leaf);
    }
    if let Some(leaf) = leaves.all().iter().find(|leaf| leaf.path.starts_with("critic.")).filter(|_| !alike) {
        let what = "a critic whose samples are padded or sharded differently from the policy's";
        lack(leaves, leaf, Effect::Memory, what);
    }
    if packed {
        let tokens =
            leaves.get("critic.ppo_max_token_len_per_gpu").and_then(|leaf| Some((leaf, leaf.whole()?)));
        // Per replica: over all accelerators that share a sequence.
        let whole = |tokens: u64| tokens.saturating_mul(shared).to_string();
        match tokens {
            Some((leaf, tokens)) => leaves.say(Field::RlCriticMicroBatch, &whole(tokens), leaf),
            None => {
                leaves.state(Field::RlCriticMicroBatch, &whole(32_768), Origin::Default, "default of verl")
            }
        }
    } else if let Some(leaf) = leaves.get("critic.ppo_micro_batch_size_per_gpu") {
        leaves.say(Field::RlCriticMicroBatch, &leaf.value, leaf);
    } else if let Some(leaf) = leaves.get("critic.ppo_micro_batch_size")
        && let (Some(all), Some(world)) = (leaf.whole(), world(leaves))
    {
        let own = (all / (world / shared.max(1)).max(1)).max(1).to_string();
        let note = "ppo_micro_batch_size over all data-parallel ranks";
        leaves.say_noted(Field::RlCriticMicroBatch, &own, leaf, note);
    }
}

/// The last part of a path, which names a model.
fn end(path: &str) -> &str {
    path.trim_end_matches('/').rsplit('/').next().unwrap_or("")
}

/// The model named by the last part of a path, even if a variable leaves its folder open.
fn shaped(leaves: &mut Leaves<'_>, field: Field, leaf: &Leaf) {
    match end(&leaf.value) {
        name if leaf.hole.is_some() && name.contains('$') => leaves.say(field, &leaf.value, leaf),
        name => leaves.state(field, name, Origin::Script, &leaf.path),
    }
}

const ENGINE: &str = "a reward model served by its own engine on the same accelerators (verl's reward loop)";

/// A reward model that an engine serves, with the keys below `group`: on accelerators of its own, or on the policy's,
/// where it is awake while it scores and asleep otherwise (`verl/experimental/reward_loop/reward_model.py:
/// RewardModelManager`, `verl/workers/rollout/vllm_rollout/vllm_async_server.py:vLLMReplica`, `RolloutMode.COLOCATED`).
fn served(leaves: &mut Leaves<'_>, group: &str, model: &str) {
    let path = |key: &str| format!("{group}{key}");
    if leaves.flag(&path("enable_resource_pool")) == Some(true) {
        leaves.state(Field::RlReward, "elsewhere", Origin::Derived, "enable_resource_pool");
        return leaves.pass_below(&[group]);
    }
    leaves.state(
        Field::RlReward,
        "engine",
        Origin::Derived,
        "verl's reward loop, without enable_resource_pool",
    );
    match leaves.get(&path("rollout.name")).filter(|leaf| leaf.hole.is_none()) {
        Some(leaf) if matches!(leaf.value.as_str(), "vllm" | "sglang") => {
            leaves.say(Field::RlRewardEngine, &leaf.value, leaf);
        }
        Some(leaf) => lack(leaves, leaf, Effect::Memory, ENGINE),
        None => leaves.state(Field::RlRewardEngine, "vllm", Origin::Default, "verl's examples"),
    }
    for (key, field, usual) in [
        ("rollout.gpu_memory_utilization", Field::RlRewardMemoryFraction, "0.5"),
        ("rollout.tensor_model_parallel_size", Field::RlRewardTensorParallelSize, "2"),
    ] {
        if !leaves.take(&[&path(key)], field) {
            leaves.state(field, usual, Origin::Default, "default of verl");
        }
    }
    // On by default: no CUDA graphs, and everything freed after the scores.
    for key in ["rollout.enforce_eager", "rollout.free_cache_engine"] {
        if let Some(leaf) = leaves.get(&path(key)).filter(|leaf| leaf.flag() == Some(false)) {
            lack(leaves, leaf, Effect::Memory, "CUDA graphs, or memory that the reward model's engine keeps");
        }
    }
    let formats = ["bfloat16", "float16", "half", "auto"];
    let wide = leaves.get(&path("rollout.dtype")).filter(|leaf| !formats.contains(&leaf.value.as_str()));
    let small =
        leaves.get(&path("rollout.quantization")).filter(|leaf| !matches!(leaf.value.as_str(), "" | "null"));
    if let Some(leaf) = wide.or(small) {
        lack(leaves, leaf, Effect::Memory, "weights of the reward model in another format");
    }
    match leaves.get(&path(model)) {
        Some(leaf) => shaped(leaves, Field::RlRewardModel, leaf),
        None => leaves.state(Field::RlRewardModel, USUAL, Origin::Default, "reward_model.model.path of verl"),
    }
    leaves.pass_below(&[group]);
}

/// verl's own reward model (`config/reward_model/reward_model.yaml`).
const USUAL: &str = "FsfairX-LLaMA3-RM-v0.1";

/// A reward model that a worker runs: sharded like the policy, in bf16, with its weights on the host
/// (`CPUOffload`) until its layers are gathered. Unless its micro-batches are configured, an engine serves it,
/// which is verl's default today.
fn reward(leaves: &mut Leaves<'_>, megatron: bool) {
    // Since verl 0.8 an engine runs the reward model; its keys are below those of other rewards
    // (`config/reward/reward.yaml`).
    if leaves.yes("reward.reward_model.enable").is_some() {
        served(leaves, "reward.reward_model.", "model_path");
    }
    let Some(enabled) = leaves.yes("reward_model.enable") else {
        // Sharding of a reward model that is not enabled; how rewards are computed without one
        // (`reward_manager`) changes nothing.
        return leaves.pass_below(&["reward_model."]);
    };
    let path = |key: &str| format!("reward_model.{key}");
    // `use_reward_loop=False` is the worker of before, whatever else is stated.
    let by_engine = leaves
        .yes("reward_model.use_reward_loop")
        .or_else(|| leaves.all().iter().find(|leaf| leaf.path.starts_with("reward_model.rollout.")))
        .filter(|_| leaves.flag("reward_model.use_reward_loop") != Some(false));
    if by_engine.is_some() {
        return served(leaves, "reward_model.", "model.path");
    }
    let cut = leaves.whole(&path("ulysses_sequence_parallel_size")).unwrap_or(1);
    let packed = leaves.reading.value(Field::MaxTokensPerGpu).is_some();
    let dynamic = leaves
        .flag(&path("use_dynamic_bsz"))
        .or_else(|| leaves.flag("critic.use_dynamic_bsz"))
        .or_else(|| leaves.flag("actor_rollout_ref.actor.use_dynamic_bsz"))
        == Some(true);
    let joined = leaves.flag(&path("model.use_remove_padding")) == Some(true);
    let alike = cut == leaves.reading.count(Field::ContextParallelSize).unwrap_or(1)
        && packed == dynamic
        && (joined || !packed);
    if megatron || leaves.text(&path("strategy")) == Some("megatron") || !alike {
        let what = "a reward model whose samples are padded or sharded differently from the policy's";
        lack(leaves, enabled, Effect::Memory, what);
        return leaves.pass_below(&["reward_model."]);
    }
    let each = leaves.get(&path("micro_batch_size_per_gpu"));
    let whole =
        leaves.get(&path("micro_batch_size")).and_then(|leaf| Some((leaf, leaf.whole()?, world(leaves)?)));
    let own = ["use_dynamic_bsz", "forward_max_token_len_per_gpu", "model.fsdp_config.", "micro_batch_size"];
    let works = |leaf: &Leaf| own.iter().any(|key| leaf.path.starts_with(&path(key)));
    if dynamic && !leaves.all().iter().any(works) {
        lack(leaves, enabled, Effect::Memory, ENGINE);
    } else if dynamic {
        let tokens = path("forward_max_token_len_per_gpu");
        let tokens = leaves.whole(&tokens).or_else(|| leaves.whole("critic.ppo_max_token_len_per_gpu"));
        let tokens = tokens.unwrap_or(32_768).saturating_mul(cut).to_string();
        leaves.state(
            Field::RlRewardMicroBatch,
            &tokens,
            Origin::Derived,
            "forward_max_token_len_per_gpu of verl",
        );
    } else if let Some(leaf) = each {
        leaves.say(Field::RlRewardMicroBatch, &leaf.value, leaf);
    } else if let Some((leaf, all, world)) = whole {
        let own = (all / world.max(1)).max(1).to_string();
        leaves.say_noted(Field::RlRewardMicroBatch, &own, leaf, "micro_batch_size over all ranks");
    } else {
        lack(leaves, enabled, Effect::Memory, ENGINE);
    }
    if !joined {
        leaves.switch(Field::RlRewardPadding, true, enabled);
    }
    let elsewhere = leaves.flag(&path("enable_resource_pool")) == Some(true);
    let (place, note) = if elsewhere {
        ("elsewhere", "enable_resource_pool")
    } else {
        ("host", "verl's reward models are on the host (CPUOffload)")
    };
    leaves.state(Field::RlReward, place, Origin::Derived, note);
    match leaves.get(&path("model.path")) {
        Some(leaf) => shaped(leaves, Field::RlRewardModel, leaf),
        None => leaves.state(Field::RlRewardModel, USUAL, Origin::Default, "reward_model.model.path of verl"),
    }
    leaves.pass_below(&["reward_model."]);
}
