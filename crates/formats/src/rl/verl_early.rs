//! verl 0.1 and 0.2, whose defaults differ from today's (`verl/trainer/config/ppo_trainer.yaml` and
//! `ppo_megatron_trainer.yaml` of January 2025; TinyZero and Logic-RL still have those defaults).

use super::super::leaves::{Leaf, Leaves};
use super::verl_keys::{ACTOR, VERL};
use crate::{Found, Origin, Reading};
use shardscope_plan::Field;

const WHOSE: &str = "default of verl 0.2, whose keys the text has";
const JANUARY: &str = "default of verl 0.1, whose keys the text has; true in 0.2";
const SPRING: &str = "default of verl before 0.6, whose keys the text has";

/// The key that identifies verl from before April 17, 2025 (`Move entropy to comput log probs`, #1100): one from
/// January; a switch that had to be added to the configuration (`+trainer.val_before_train`) until it became part of
/// it (#820, March 31, 2025), after which Hydra rejects adding it; one that `loss_agg_mode` took the place of (#623,
/// April 4, 2025); or a coefficient of the KL in rewards beside one in the loss, which has been idle without a switch of its own since
/// April 1, 2025.
pub(super) fn sign<'t>(leaves: &Leaves<'t>) -> Option<&'t Leaf> {
    let is_added = |leaf: &&Leaf| leaf.added && leaf.path == "trainer.val_before_train";
    let is_replaced =
        |leaf: &&Leaf| !leaf.added && leaf.path == "actor_rollout_ref.actor.use_token_level_loss";
    let all = leaves.all();
    of_january(leaves)
        .or_else(|| all.iter().find(is_added))
        .or_else(|| all.iter().find(is_replaced))
        .or_else(|| idle_coefficient(leaves))
}

/// A coefficient of the KL in rewards beside one in the loss, of a text with no key of April 2025 or later.
fn idle_coefficient<'t>(leaves: &Leaves<'t>) -> Option<&'t Leaf> {
    /// Beginnings of keys that verl has had since then.
    const SINCE: [&str; 8] = [
        "model_engine",
        "actor_rollout_ref.rollout.agent.",
        "actor_rollout_ref.rollout.calculate_log_probs",
        "actor_rollout_ref.rollout.mode",
        "critic.enable",
        "global_profiler",
        "reward.",
        "trainer.use_v1",
    ];
    let all = leaves.all();
    let coefficient = all.iter().find(|leaf| leaf.path == "algorithm.kl_ctrl.kl_coef")?;
    let own = ["algorithm.use_kl_in_reward", "actor_rollout_ref.actor.entropy_coeff"];
    let is_of_now = |leaf: &Leaf| {
        own.contains(&leaf.path.as_str()) || SINCE.iter().any(|start| leaf.path.starts_with(start))
    };
    let beside = leaves.flag("actor_rollout_ref.actor.use_kl_loss") == Some(true);
    let later = || {
        all.iter().any(is_of_now)
            || is_later(leaves)
            || is_of_spring(leaves)
            || has_any(leaves, &TO_FIVE)
            || has_any(leaves, &TO_EIGHT)
    };
    (beside && !later()).then_some(coefficient)
}

/// Gradients were offloaded by a switch that was later removed, and micro-batches were counted over all ranks, which is
/// still possible together with keys of later releases.
fn of_january<'t>(leaves: &Leaves<'t>) -> Option<&'t Leaf> {
    let all = leaves.all();
    let stated = |name: &str| {
        all.iter().find(|leaf| leaf.path.strip_prefix(ACTOR) == Some(name) && !leaf.value.is_empty())
    };
    let over_all = stated("ppo_micro_batch_size").filter(|_| !is_later(leaves));
    all.iter().find(|leaf| leaf.path.ends_with("fsdp_config.grad_offload")).or(over_all)
}

/// Keys of verl's configuration since January 27, 2025 (#136), when micro-batches began to be counted per rank.
const LATER: [&str; 13] = [
    "data.filter_overlong_prompts",
    "data.shuffle",
    "data.truncation",
    "algorithm.use_kl_in_reward",
    "actor_rollout_ref.actor.clip_ratio_high",
    "actor_rollout_ref.actor.clip_ratio_low",
    "actor_rollout_ref.actor.loss_agg_mode",
    "actor_rollout_ref.actor.use_torch_compile",
    "actor_rollout_ref.rollout.max_model_len",
    "actor_rollout_ref.rollout.enable_chunked_prefill",
    "reward_model.reward_manager",
    "trainer.resume_mode",
    "trainer.val_before_train",
];

/// Whether a key identifies verl since that date: one of these, or a batch that is counted per rank. A key that a text
/// adds to the configuration may be added to any release.
pub(super) fn is_later(leaves: &Leaves<'_>) -> bool {
    leaves.all().iter().filter(|leaf| !leaf.added).any(|leaf| {
        let path = leaf.path.as_str();
        LATER.contains(&path) || path.ends_with("micro_batch_size_per_gpu")
    })
}

/// Keys that verl's configuration lost between June 7 and July 22, 2025 (#1831, #1350, #1630, #2257, #2651). From April 17
/// (#1100) to July 24 (#2484) its Megatron engine took entropies of the logits themselves. Three of the keys are of March and
/// April already: a file of those weeks is counted like one of May.
const OF_SPRING: [&str; 6] = [
    "actor_rollout_ref.actor.checkpoint.contents",
    "critic.checkpoint.contents",
    "actor_rollout_ref.rollout.chat_scheduler",
    "actor_rollout_ref.rollout.multi_turn.max_turns",
    "actor_rollout_ref.rollout.use_fire_sampling",
    "actor_rollout_ref.model.gradient_checkpointing_kwargs.activations_checkpoint_method",
];

/// Whether a key identifies verl from before July 24, 2025. A key that a text adds may be added to any release.
pub(super) fn is_of_spring(leaves: &Leaves<'_>) -> bool {
    leaves.all().iter().any(|leaf| !leaf.added && OF_SPRING.contains(&leaf.path.as_str()))
}

/// Whether the engine sleeps whatever `free_cache_engine` says: with vLLM since 0.7 it always did until June 29, 2025 (#1464), when the
/// switch, which had acted on vLLM 0.6.3 and before alone, came to act on all (`vllm_rollout_spmd.py`, `fsdp_vllm.py`,
/// `fsdp_sglang.py` of 0.4.1 and 0.5.0). Files of before April may run the former engine.
fn always_sleeps(leaves: &Leaves<'_>) -> bool {
    is_of_spring(leaves) && sign(leaves).is_none()
}

/// States whether the engine sleeps while the policy trains.
pub(super) fn sleep(leaves: &mut Leaves<'_>) {
    let Some(leaf) = leaves.get("actor_rollout_ref.rollout.free_cache_engine") else { return };
    if leaf.flag() == Some(false) && always_sleeps(leaves) {
        let note = "free_cache_engine acts since July 2025, and the text has keys of before";
        leaves.say_noted(Field::RolloutSleep, "true", leaf, note);
    } else {
        leaves.switch(Field::RolloutSleep, leaf.flag() != Some(false), leaf);
    }
}

/// Keys that verl's configurations had until 0.5 and no longer have (`_generated_ppo_trainer.yaml` and
/// `_generated_ppo_megatron_trainer.yaml` of 0.6.0; `ppo_trainer.yaml` of 0.2 to 0.5.0 had them), some with what is below them.
/// FlagScale's files name what it hands on by a key of its own; its submodule is verl of June 30, 2025 (8b33abd84).
const TO_FIVE: [&str; 13] = [
    "actor_rollout_ref.actor.profile",
    "actor_rollout_ref.profiler",
    "actor_rollout_ref.ref.profile",
    "actor_rollout_ref.rollout.engine_kwargs.sglang.attention_backend",
    "actor_rollout_ref.rollout.engine_kwargs.vllm.disable_mm_preprocessor_cache",
    "actor_rollout_ref.rollout.engine_kwargs.vllm.swap_space",
    "actor_rollout_ref.rollout.multi_turn.completion_callback",
    "append_kargs",
    "ray_init",
    "trainer.controller_nsight_options",
    "trainer.npu_profile",
    "trainer.profile_steps",
    "trainer.val_generations_to_log_to_wandb",
];

/// The same for 0.6 to 0.8, of which 0.9.0 no longer has any.
const TO_EIGHT: [&str; 29] = [
    "actor_rollout_ref.actor.load_weight",
    "actor_rollout_ref.actor.sum_pi_squared_checkpointing",
    "actor_rollout_ref.model.override_config.model_config",
    "actor_rollout_ref.model.override_config.moe_config",
    "actor_rollout_ref.ref.load_weight",
    "actor_rollout_ref.ref.model",
    "actor_rollout_ref.rollout.layer_name_map",
    "actor_rollout_ref.rollout.multi_turn.interaction_config_path",
    "actor_rollout_ref.rollout.skip",
    "actor_rollout_ref.rollout.skip_rollout",
    "actor_rollout_ref.rollout.update_weights_bucket_megabytes",
    "algorithm.rollout_is",
    "algorithm.rollout_is_level",
    "algorithm.rollout_is_threshold",
    "critic.load_weight",
    "critic.model.fsdp_config",
    "critic.model.override_config.model_config",
    "data.datagen",
    "data.sampler",
    "reward_model.forward_max_token_len_per_gpu",
    "reward_model.launch_reward_fn_async",
    "reward_model.max_length",
    "reward_model.micro_batch_size",
    "reward_model.micro_batch_size_per_gpu",
    "reward_model.model.fsdp_config",
    "reward_model.sandbox_fusion",
    "reward_model.strategy",
    "reward_model.use_dynamic_bsz",
    "trainer.use_legacy_worker_impl",
];

/// Rollouts that no server answers, which 0.7.0 refuses (`verl/workers/config/rollout.py:__post_init__`) and 0.6 has by default.
fn generates_in_step(leaves: &Leaves<'_>) -> bool {
    leaves.text("actor_rollout_ref.rollout.mode") == Some("sync")
}

/// Whether the text has one of `keys`, or a key below one. One that a text adds may be added to any release.
fn has_any(leaves: &Leaves<'_>, keys: &[&str]) -> bool {
    leaves.all().iter().filter(|leaf| !leaf.added).any(|leaf| {
        let below = |key: &&str| {
            leaf.path.strip_prefix(*key).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        keys.iter().any(below)
    })
}

/// The engine's weights by the name that verl had for it until 0.5 (`dummy` since: `ppo_trainer.yaml` of 0.5.0 and 0.6.0).
fn has_former_format(leaves: &Leaves<'_>) -> bool {
    leaves.text("actor_rollout_ref.rollout.load_format") == Some("dummy_dtensor")
}

/// Whether the text has keys of a release to 0.5, or rollouts that 0.6 was the last to have by default.
pub(super) fn is_to_six(leaves: &Leaves<'_>) -> bool {
    let early = sign(leaves).is_some() || is_of_spring(leaves) || has_former_format(leaves);
    early || has_any(leaves, &TO_FIVE) || generates_in_step(leaves)
}

/// Whether the text has keys of a release from 0.6 to 0.8.
pub(super) fn is_to_eight(leaves: &Leaves<'_>) -> bool {
    has_any(leaves, &TO_EIGHT)
}

/// What is not stated, in the releases of today (`ppo_trainer.yaml`, `_generated_ppo_trainer.yaml` by tag): packed samples since
/// 0.7 (false in 0.2 to 0.6), graphs of the engine since 0.6 (`enforce_eager`, true to 0.5), 256 sequences since 0.9 (1024 in 0.2
/// to 0.8.0; main had 256 from January 24 to 31, 2026 as well, #4280 and #5139). What only releases to 0.8 have tells them.
pub(super) fn today(leaves: &mut Leaves<'_>) {
    let sequences = if has_any(leaves, &TO_EIGHT) || generates_in_step(leaves) {
        (Field::RolloutSequences, "1024", "default of verl to 0.8, whose keys the text has")
    } else {
        (Field::RolloutSequences, "256", "default of verl since 0.9; 1024 to 0.8")
    };
    let since = [sequences, (Field::RolloutCudaGraphs, "true", "default of verl since 0.6; false before")];
    for (field, value, note) in since {
        leaves.state(field, value, Origin::Default, note);
    }
}

/// Puts the sequences of 0.8 in place of 0.9's, if that is what the text installs.
pub(super) fn date(reading: &mut Reading, installed: Option<[u64; 2]>) {
    let newest =
        |found: &&mut Found| found.field == Field::RolloutSequences && found.origin == Origin::Default;
    if installed == Some([0, 8])
        && let Some(found) = reading.found.iter_mut().find(newest)
    {
        "1024".clone_into(&mut found.value);
        found.note = Some("default of verl 0.8, which the text installs".to_owned());
    }
}

/// States that samples are packed, where the text does not say whether.
pub(super) fn packed(leaves: &mut Leaves<'_>) {
    if leaves.get("actor_rollout_ref.model.use_remove_padding").is_none() {
        if generates_in_step(leaves) {
            let note = "default of verl to 0.6, whose mode of rollouts the text has";
            leaves.state_all(
                &[(Field::Packing, "false"), (Field::PaddingMask, "true")],
                Origin::Default,
                note,
            );
        }
        leaves.state(
            Field::Packing,
            "true",
            Origin::Default,
            "default of verl since 0.7; padded in 0.2 to 0.6",
        );
    }
}

/// States which verl it is.
pub(super) fn framework(leaves: &mut Leaves<'_>) {
    let (word, why) = if is_of_spring(leaves) {
        ("verl_2025", "keys that verl has not had since July 2025")
    } else {
        (VERL, "verl's keys")
    };
    leaves.state(Field::RlFramework, word, Origin::Derived, why);
}

/// States their defaults, before today's defaults are applied.
pub(super) fn read(leaves: &mut Leaves<'_>, megatron: bool) {
    let early = sign(leaves).is_some();
    if !early && !is_of_spring(leaves) && !has_former_format(leaves) && !has_any(leaves, &TO_FIVE) {
        return;
    }
    let whose = if early { WHOSE } else { SPRING };
    let defaults = [(Field::RolloutCudaGraphs, "false"), (Field::RolloutSequences, "1024")];
    leaves.state_all(&defaults, Origin::Default, whose);
    if megatron {
        if early && !leaves.has("actor_rollout_ref.actor.megatron.tensor_model_parallel_size") {
            leaves.state(Field::TensorModelParallelSize, "4", Origin::Default, WHOSE);
        }
        return;
    }
    // On by default since January 28, 2025 (#147), a day after the first of the later keys.
    let january = of_january(leaves).is_some() && !is_later(leaves);
    if january && !leaves.has("actor_rollout_ref.model.enable_gradient_checkpointing") {
        leaves.state(Field::GradientCheckpointing, "false", Origin::Default, JANUARY);
    }
    if !leaves.has("actor_rollout_ref.model.use_remove_padding") {
        leaves.state_all(&[(Field::Packing, "false"), (Field::PaddingMask, "true")], Origin::Default, whose);
    }
}
