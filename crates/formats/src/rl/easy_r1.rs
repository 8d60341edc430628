//! EasyR1, a fork of verl whose keys have other names and defaults. It behaves like verl unless stated otherwise here:
//! `verl/trainer/config.py`, `verl/workers/{actor,critic,rollout}/config.py`, `verl/workers/fsdp_workers.py`,
//! `verl/workers/actor/dp_actor.py` of hiyouga/EasyR1.

use super::super::leaves::Leaves;
use super::super::scalars::{Leaf, Scalars};
use super::verl_scored::{packed, scored};
use super::{common::lack, verl};
use crate::{Argument, Effect, Origin};
use shardscope_bash::base_name;
use shardscope_config_tree::Node;
use shardscope_plan::Field;

/// Its groups and keys, and verl's names for them; longer ones first.
const NAMES: [(&str, &str); 33] = [
    ("worker.actor.global_batch_size", "actor_rollout_ref.actor.ppo_mini_batch_size"),
    (
        "worker.actor.micro_batch_size_per_device_for_update",
        "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu",
    ),
    ("worker.actor.padding_free", "actor_rollout_ref.model.use_remove_padding"),
    ("worker.actor.ulysses_size", "actor_rollout_ref.actor.ulysses_sequence_parallel_size"),
    ("worker.actor.ulysses_sequence_parallel_size", "actor_rollout_ref.actor.ulysses_sequence_parallel_size"),
    ("worker.actor.use_torch_compile", "actor_rollout_ref.actor.use_torch_compile"),
    ("worker.actor.max_grad_norm", "actor_rollout_ref.actor.grad_clip"),
    ("worker.actor.model.model_path", "actor_rollout_ref.model.path"),
    ("worker.actor.model.freeze_vision_tower", "actor_rollout_ref.actor.freeze_vision_tower"),
    ("worker.actor.model.lora.rank", "actor_rollout_ref.model.lora_rank"),
    ("worker.actor.model.", "actor_rollout_ref.model."),
    ("worker.actor.fsdp.enable_full_shard", "actor_rollout_ref.actor.fsdp_config.reshard_after_forward"),
    ("worker.actor.fsdp.torch_dtype", "actor_rollout_ref.actor.fsdp_config.model_dtype"),
    ("worker.actor.fsdp.fsdp_size", "actor_rollout_ref.actor.fsdp_config.fsdp_size"),
    ("worker.actor.fsdp.mp_param_dtype", "actor_rollout_ref.actor.fsdp_config.mixed_precision.param_dtype"),
    ("worker.actor.fsdp.mp_reduce_dtype", "actor_rollout_ref.actor.fsdp_config.mixed_precision.reduce_dtype"),
    ("worker.actor.fsdp.mp_buffer_dtype", "actor_rollout_ref.actor.fsdp_config.mixed_precision.buffer_dtype"),
    ("worker.actor.fsdp.use_orig_params", "actor_rollout_ref.actor.fsdp_config.use_orig_params"),
    ("worker.actor.offload.offload_params", "actor_rollout_ref.actor.fsdp_config.param_offload"),
    ("worker.actor.offload.offload_optimizer", "actor_rollout_ref.actor.fsdp_config.optimizer_offload"),
    ("worker.rollout.tensor_parallel_size", "actor_rollout_ref.rollout.tensor_model_parallel_size"),
    ("worker.rollout.", "actor_rollout_ref.rollout."),
    ("worker.critic.model.model_path", "critic.model.path"),
    ("worker.critic.padding_free", "critic.model.use_remove_padding"),
    ("worker.critic.ulysses_size", "critic.ulysses_sequence_parallel_size"),
    ("worker.critic.micro_batch_size_per_device_for_update", "critic.ppo_micro_batch_size_per_gpu"),
    ("worker.critic.offload.offload_params", "critic.model.fsdp_config.param_offload"),
    ("worker.critic.offload.offload_optimizer", "critic.model.fsdp_config.optimizer_offload"),
    ("worker.critic.", "critic."),
    ("worker.reward.", "reward."),
    ("data.rollout_batch_size", "data.train_batch_size"),
    ("worker.actor.optim.strategy", "worker.actor.optim.strategy"),
    ("worker.actor.optim.", "actor_rollout_ref.actor.optim."),
];

/// Its defaults for missing keys, under its own names.
const DEFAULTS: [(&str, &str); 18] = [
    ("algorithm.adv_estimator", "grpo"),
    ("data.max_prompt_length", "512"),
    ("data.max_response_length", "512"),
    ("data.rollout_batch_size", "512"),
    ("worker.actor.global_batch_size", "256"),
    ("worker.actor.micro_batch_size_per_device_for_update", "4"),
    ("worker.actor.micro_batch_size_per_device_for_experience", "16"),
    ("worker.actor.padding_free", "true"),
    ("worker.actor.dynamic_batching", "true"),
    ("worker.critic.micro_batch_size_per_device_for_update", "4"),
    ("worker.critic.model.enable_gradient_checkpointing", "true"),
    ("worker.rollout.name", "vllm"),
    ("worker.rollout.n", "1"),
    ("worker.rollout.tensor_parallel_size", "2"),
    ("worker.rollout.gpu_memory_utilization", "0.6"),
    ("worker.rollout.enforce_eager", "false"),
    ("trainer.nnodes", "1"),
    ("trainer.n_gpus_per_node", "8"),
];

/// Keys that only releases before July 2025 have: the sequence parallel size was renamed on June 14 (64f5445), and the
/// reward's function by its name was gone from April 4 (30fe6b5).
const EARLIER: [&str; 3] = [
    "worker.actor.ulysses_sequence_parallel_size",
    "worker.critic.ulysses_sequence_parallel_size",
    "worker.reward.compute_score",
];

/// The defaults of those releases where they differ: they count samples, as micro-batches by tokens came on July 14, 2025
/// (9146f0f), and pad them (until ebf1a3c, June 13).
const EARLIER_DEFAULTS: [(&str, &str); 3] = [
    ("worker.actor.padding_free", "false"),
    ("worker.critic.padding_free", "false"),
    ("worker.actor.dynamic_batching", "false"),
];

/// The file on which its examples build, as far as it differs from the defaults in settings that change a figure, since
/// August 8, 2025 (e449b4a). Before, its micro-batches were 4 and 16 samples, and everyone's copy is in their own repository.
const EXAMPLES: &str = "examples/config.yaml";
const OF_EXAMPLES: [(&str, &str); 11] = [
    ("algorithm.use_kl_loss", "true"),
    ("data.max_prompt_length", "2048"),
    ("data.max_response_length", "2048"),
    ("worker.actor.global_batch_size", "128"),
    ("worker.actor.micro_batch_size_per_device_for_update", "1"),
    ("worker.actor.micro_batch_size_per_device_for_experience", "2"),
    ("worker.actor.model.model_path", "Qwen/Qwen2.5-7B-Instruct"),
    ("worker.actor.offload.offload_params", "true"),
    ("worker.actor.offload.offload_optimizer", "true"),
    ("worker.rollout.n", "5"),
    ("worker.ref.fsdp.enable_cpu_offload", "true"),
];

/// Its own keys that change no figure: the loss formula, weight loading, sampling and random draws.
const IDLE: [&str; 24] = [
    "worker.hybrid_engine",
    "worker.actor.clip_ratio",
    "worker.actor.loss_",
    "worker.actor.tau_",
    "worker.actor.ppo_epochs",
    "worker.actor.fsdp.enable_rank0_init",
    "actor_rollout_ref.model.lora_exclude_modules",
    "worker.ref.fsdp.",
    "worker.ref.offload.",
    "worker.ref.strategy",
    "worker.actor.optim.strategy",
    "worker.actor.micro_batch_size_per_device_for_experience",
    "worker.actor.dynamic_batching",
    "actor_rollout_ref.rollout.disable_",
    "actor_rollout_ref.rollout.val_override_config",
    "actor_rollout_ref.rollout.trust_remote_code",
    "data.mini_rollout_batch_size",
    "data.answer_key",
    "data.image_dir",
    "data.video_fps",
    "data.format_prompt",
    "data.override_chat_template",
    "data.min_pixels",
    "data.max_pixels",
];

/// The words of a command, on top of the file that it names and the defaults.
pub(super) fn of_words(words: &[Argument]) -> Scalars {
    let of_examples = configuration(words).is_some_and(|file| is_known(file, words));
    renamed(&Scalars::of_words(words), of_examples)
}

/// A settings file, on top of the defaults.
pub(super) fn of_file(root: &Node) -> Scalars {
    renamed(&Scalars::from_node(root), false)
}

/// The file that a command builds on.
pub fn configuration(words: &[Argument]) -> Option<&str> {
    words.iter().find_map(|word| word.text.strip_prefix("config="))
}

/// The settings of an actor in every release of EasyR1 (`verl/workers/actor/config.py:ActorConfig` to b44b311, July 30, 2026).
const OF_ACTORS: &str = "clip_ratio clip_ratio_dual clip_ratio_high clip_ratio_low disable_kl dynamic_batching entropy_coeff fsdp \
    global_batch_size global_batch_size_per_device kl_coef kl_loss_coef kl_loss_type kl_penalty loss_avg_mode loss_type max_grad_norm \
    micro_batch_size_per_device_for_experience micro_batch_size_per_device_for_update model offload optim padding_free ppo_epochs report_kl \
    strategy tau_negative tau_positive ulysses_sequence_parallel_size ulysses_size use_kl_loss use_torch_compile";

/// Whether the actor has a setting that EasyR1's never had: the program is a fork, and so is its file.
fn is_of_fork(words: &[Argument]) -> bool {
    words.iter().any(|word| {
        let key = word.text.split('=').next().and_then(|path| path.strip_prefix("worker.actor."));
        let name = key.and_then(|key| key.split('.').next());
        name.is_some_and(|name| !OF_ACTORS.split(' ').any(|known| known == name))
    })
}

/// Whether it is the file that is known here, and the words leave nothing to it that differs from one copy to the next:
/// they state both micro-batches, or have a key that came with today's, and none that EasyR1's program would refuse.
pub fn is_known(file: &str, words: &[Argument]) -> bool {
    const SIZES: [&str; 2] = [
        "worker.actor.micro_batch_size_per_device_for_update=",
        "worker.actor.micro_batch_size_per_device_for_experience=",
    ];
    // January 29, 2026.
    const LATER: &str = "worker.actor.model.lora.";
    let has = |start: &str| words.iter().any(|word| word.text.trim_start_matches('+').starts_with(start));
    let is_examples = file.ends_with(EXAMPLES) || file == base_name(EXAMPLES);
    let earlier = EARLIER.iter().any(|key| has(key));
    is_examples && !earlier && !is_of_fork(words) && (has(LATER) || SIZES.iter().all(|key| has(key)))
}

fn renamed(own: &Scalars, of_examples: bool) -> Scalars {
    let mut leaves: Vec<Leaf> =
        DEFAULTS.iter().map(|(path, value)| Leaf::of_base("EasyR1", path, value)).collect();
    if EARLIER.iter().any(|key| own.all().iter().any(|leaf| leaf.path == *key)) {
        leaves.extend(
            EARLIER_DEFAULTS
                .iter()
                .map(|(path, value)| Leaf::of_base("EasyR1 before July 2025", path, value)),
        );
    }
    if of_examples {
        leaves.extend(OF_EXAMPLES.iter().map(|(path, value)| Leaf::of_base(EXAMPLES, path, value)));
    }
    leaves.extend(own.all().iter().cloned());
    for leaf in &mut leaves {
        if let Some((own, name)) = NAMES
            .iter()
            .find(|(own, _)| leaf.path == *own || own.ends_with('.') && leaf.path.starts_with(own))
        {
            let rest = leaf.path.strip_prefix(own).unwrap_or_default();
            leaf.path = format!("{name}{rest}")
                .replace("model.lora.", "model.lora_")
                .replace(".lora_target_", ".target_");
        }
    }
    Scalars::from_leaves(leaves)
}

/// Reads EasyR1's keys as verl's, and those that differ.
pub(super) fn read(leaves: &mut Leaves<'_>) {
    let whole = |leaves: &Leaves<'_>, path: &str| leaves.whole(path).unwrap_or(1);
    let micro = whole(leaves, "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu");
    let experience = "worker.actor.micro_batch_size_per_device_for_experience";
    let packs = leaves.flag("worker.actor.dynamic_batching") == Some(true);
    // The reference uses the actor's setting (`verl/trainer/config.py:PPOConfig.post_init`).
    let length =
        whole(leaves, "data.max_prompt_length").saturating_add(whole(leaves, "data.max_response_length"));
    let shared = whole(leaves, "actor_rollout_ref.actor.ulysses_sequence_parallel_size").max(1);
    let tokens = |samples: u64| samples.saturating_mul(length) / shared;
    if let Some(leaf) = leaves.get(experience) {
        let samples = leaf.whole().unwrap_or(u64::MAX);
        if packs {
            packed(leaves, leaf, tokens(samples), tokens(micro));
        } else {
            scored(leaves, leaf, samples);
        }
    }
    // Packs of as many tokens as the micro-batch's samples have at full length
    // (`dp_actor.py:update_policy`, `prepare_dynamic_batch`).
    if packs {
        let tokens = tokens(micro).to_string();
        leaves.state(
            Field::MaxTokensPerGpu,
            &tokens,
            Origin::Derived,
            "micro-batch x longest sample, dynamic_batching",
        );
    }
    for (path, what) in [
        (
            "worker.actor.fsdp.enable_cpu_offload",
            "weights, gradients and states on the host while training (CPUOffload)",
        ),
        ("worker.critic.fsdp.enable_cpu_offload", "a critic on the host while it trains (CPUOffload)"),
    ] {
        if let Some(leaf) = leaves.yes(path) {
            lack(leaves, leaf, Effect::Memory, what);
        }
    }
    if let Some(leaf) = leaves.get("worker.actor.optim.strategy").filter(|leaf| leaf.value != "adamw") {
        let critics = leaves.text("algorithm.adv_estimator") == Some("gae");
        if leaf.value == "adamw_bf16" && !critics {
            leaves.say(Field::Optimizer, "adamw_kahan", leaf);
        } else {
            lack(leaves, leaf, Effect::Memory, "this optimizer of EasyR1, or one beside a critic's own");
        }
    }
    if let Some(leaf) =
        leaves.get("actor_rollout_ref.model.lora_rank").filter(|leaf| leaf.whole().unwrap_or(1) > 0)
    {
        lack(leaves, leaf, Effect::Memory, "fp32 adapters over 16-bit weights");
    }
    verl::read(leaves);
    // EasyR1's loop reduces gradients with every micro-batch, in each of its releases.
    leaves.reading.keep(&|found| !matches!(found.field, Field::RlFramework | Field::DeferReduction));
    leaves.state(Field::RlFramework, "easy_r1", Origin::Derived, "EasyR1's keys");
    reference(leaves);
    leaves.pass_below(&IDLE);
}

/// The reference is present unless disabled; its weights are in 16 bits, on the accelerators unless they are offloaded.
fn reference(leaves: &mut Leaves<'_>) {
    leaves.reading.keep(&|found| found.field != Field::RlReference);
    let yes = |leaves: &Leaves<'_>, path: &str| leaves.flag(path) == Some(true);
    let (place, note) = match () {
        () if yes(leaves, "algorithm.disable_kl") => ("none", "algorithm.disable_kl"),
        () if yes(leaves, "worker.ref.fsdp.enable_cpu_offload") => ("host", "ref.fsdp.enable_cpu_offload"),
        () if yes(leaves, "worker.ref.offload.offload_params") => ("host", "ref.offload.offload_params"),
        () => {
            let item = "a reference model in 16 bits on the GPU (no ref.fsdp.enable_cpu_offload)";
            let item =
                crate::NotModelled::new("worker.ref.fsdp.enable_cpu_offload", "false", Effect::Memory, item);
            leaves.reading.not_modelled.push(item);
            ("device", "ref.fsdp.enable_cpu_offload is off")
        }
    };
    leaves.state(Field::RlReference, place, Origin::Derived, note);
}
