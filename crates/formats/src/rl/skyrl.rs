//! SkyRL: a policy under FSDP2 or Megatron, vLLM on the same or separate accelerators, and its supervised trainer. Keys
//! and defaults: `skyrl/train/config/config.py`, `sft_config.py`; names from releases before 0.4 follow today's.

use super::super::leaves::{Leaf, Leaves};
use super::common::{ask, defaults, idle, lack, lack_yes, model, offloads, own_code, policy, tower};
use super::skyrl_engine::{self, Keys, SKYRL};
use crate::named::take_model;
use crate::trainer::takes_decoder_out;
use crate::{Effect, Origin};
use shardscope_plan::Field;

/// Key prefixes of a reinforcement-learning command.
pub(super) const FIRST: &[&str] = &[
    "trainer.policy.",
    "trainer.placement.",
    "trainer.algorithm.",
    "generator.inference_engine.",
    "generator.sampling_params.",
];

/// Whether a program is the supervised trainer, whose keys have no group.
pub(super) fn tunes(program: &str) -> bool {
    program.contains("skyrl") && (program.ends_with("main_sft") || program.ends_with("main_sft.py"))
}

pub(super) fn read(leaves: &mut Leaves<'_>) {
    let tunes = leaves.has("model.path") && !leaves.has("trainer.policy.model.path");
    let keys = if tunes { Keys::tuning() } else { Keys::policy() };
    machines(leaves, &keys);
    let packs = if tunes { supervised(leaves) } else { batch(leaves) };
    skyrl_engine::read(leaves, &keys);
    policy(leaves, SKYRL);
    leaves.state(Field::RlFramework, "skyrl", Origin::Derived, "SkyRL's keys");
    if tunes {
        // Its loss uses the same log-probabilities; nothing generates.
        leaves.state(Field::RolloutGpus, "0", Origin::Derived, "supervised training starts no engine");
    } else {
        rollout(leaves);
        beside(leaves);
    }
    let path = [keys.own("model.path")];
    // `skyrl/backends/skyrl_train/workers/model_wrapper.py` passes `trust_remote_code=True`.
    let plain = leaves.reading.value(Field::DataParallelEngine).is_some();
    own_code(leaves, &[path[0].as_str()], "", plain);
    // Without its vision tower, where transformers takes the decoder out (`HFModelWrapper`), and Qwen3.5's decoder in Megatron
    // (`megatron/model_bridges.py:maybe_force_qwen35_text_bridge`).
    let alone = leaves.flag(&keys.own("language_model_only")) == Some(true)
        && leaves.text(&path[0]).is_some_and(|name| {
            takes_decoder_out(name) && (plain || name.to_ascii_lowercase().contains("qwen3"))
        });
    if alone {
        let why = "language_model_only trains the decoder alone";
        leaves.state(Field::VisionTower, "false", Origin::Derived, why);
        if let Some(leaf) = leaves.get(&path[0]).filter(|leaf| leaf.hole.is_none()) {
            take_model(&mut leaves.reading, &leaf.value, &leaf.path, leaf.span);
        }
    } else {
        model(leaves, &[path[0].as_str()]);
        if plain {
            tower(leaves, SKYRL, &keys.own("fsdp_config.wrap_policy"));
        }
    }
    if !packs {
        ask(leaves, &[(Field::SeqLength, "Longest sample, in tokens (max_length)?", "4096")]);
    }
    idle(leaves, "skyrl");
}

fn machines(leaves: &mut Leaves<'_>, keys: &Keys) {
    let (nodes, each) = (keys.machines("num_nodes"), keys.machines("num_gpus_per_node"));
    leaves.take_all(&[(nodes.as_str(), Field::NumNodes), (each.as_str(), Field::GpusPerNode)]);
    let each = if keys.tunes() { "4" } else { "1" };
    defaults(leaves, SKYRL, &[(Field::NumNodes, "1"), (Field::GpusPerNode, each)]);
}

/// An optimizer step takes a mini-batch of prompts with all their rollouts; returns whether micro-batches count tokens.
fn batch(leaves: &mut Leaves<'_>) -> bool {
    leaves.take(&["generator.n_samples_per_prompt"], Field::RolloutsPerPrompt);
    defaults(leaves, SKYRL, &[(Field::RolloutsPerPrompt, "5")]);
    leaves.take(&["trainer.train_batch_size"], Field::RolloutPrompts);
    defaults(leaves, SKYRL, &[(Field::RolloutPrompts, "1024")]);
    let rollouts = leaves.reading.count(Field::RolloutsPerPrompt);
    match leaves.get("trainer.policy_mini_batch_size") {
        Some(leaf) => match (leaf.whole(), rollouts) {
            (Some(prompts), Some(each)) => {
                let note = "policy_mini_batch_size x n_samples_per_prompt";
                let sequences = prompts.saturating_mul(each).to_string();
                leaves.say_noted(Field::GlobalBatchSize, &sequences, leaf, note);
            }
            _ => leaves.say(Field::GlobalBatchSize, &leaf.value, leaf),
        },
        None => {
            let sequences = 256_u64.saturating_mul(rollouts.unwrap_or(1)).to_string();
            let note = "policy_mini_batch_size of 256, default of SkyRL, x n_samples_per_prompt";
            leaves.state(Field::GlobalBatchSize, &sequences, Origin::Default, note);
        }
    }
    // A multi-turn conversation grows up to `max_input_length`, followed by an answer of at most the maximum answer
    // length (`SkyRLGymGenerator.agent_loop`).
    let stated = ["generator.max_input_length", "trainer.max_prompt_length"]
        .into_iter()
        .filter_map(|path| leaves.get(path))
        .collect::<Vec<_>>();
    let prompt = stated.iter().filter_map(|leaf| leaf.whole()).max();
    let response = leaves.get("generator.sampling_params.max_generate_length");
    let place = response.or(stated.first().copied());
    let open = stated.iter().copied().chain(response).find(|leaf| leaf.whole().is_none());
    let length = prompt.unwrap_or(512).saturating_add(response.and_then(|leaf| leaf.whole()).unwrap_or(1024));
    let field = if packed(leaves, "trainer.") { Field::RolloutLength } else { Field::SeqLength };
    match (open, place) {
        (Some(leaf), _) => leaves.say(field, &leaf.value, leaf),
        (None, Some(leaf)) => {
            leaves.say_noted(field, &length.to_string(), leaf, "longest prompt and response together");
        }
        (None, None) => {
            leaves.state(field, "1536", Origin::Default, "512 tokens of prompt and 1,024 of response")
        }
    }
    if field == Field::SeqLength {
        leaves.take(&["trainer.micro_train_batch_size_per_gpu"], Field::MicroBatchSize);
        defaults(leaves, SKYRL, &[(Field::MicroBatchSize, "1")]);
    }
    leaves.pass("trainer.micro_train_batch_size_per_gpu");
    field != Field::SeqLength
}

/// Micro-batches of a fixed number of tokens, over all GPUs that share a sequence.
fn packed(leaves: &mut Leaves<'_>, group: &str) -> bool {
    let path = format!("{group}max_tokens_per_microbatch");
    let Some(leaf) = leaves.get(&path).filter(|leaf| leaf.whole().is_some_and(|tokens| tokens > 0)) else {
        return false;
    };
    leaves.say(Field::MaxTokensPerMicroBatch, &leaf.value, leaf);
    true
}

fn supervised(leaves: &mut Leaves<'_>) -> bool {
    leaves.take(&["batch_size"], Field::GlobalBatchSize);
    defaults(leaves, SKYRL, &[(Field::GlobalBatchSize, "4")]);
    let packs = leaves.flag("use_sequence_packing") == Some(true);
    if packs {
        // By default bins have the size of the longest sample (`resolved_bin_capacity`).
        if !packed(leaves, "") {
            leaves.take(&["max_length"], Field::MaxTokensPerMicroBatch);
        }
        leaves.take(&["max_length"], Field::RolloutLength);
    } else {
        leaves.take_all(&[
            ("max_length", Field::SeqLength),
            ("micro_train_batch_size_per_gpu", Field::MicroBatchSize),
        ]);
        defaults(leaves, SKYRL, &[(Field::MicroBatchSize, "2")]);
    }
    for path in ["max_tokens_per_microbatch", "micro_train_batch_size_per_gpu"] {
        leaves.pass(path);
    }
    packs
}

fn rollout(leaves: &mut Leaves<'_>) {
    let engine = |key: &str| format!("generator.inference_engine.{key}");
    match leaves.first(&[&engine("backend"), "generator.backend"]) {
        Some(leaf) if matches!(leaf.value.as_str(), "vllm" | "sglang") => {
            leaves.say(Field::RolloutEngine, &leaf.value, leaf);
        }
        Some(leaf) if leaf.hole.is_none() => lack(leaves, leaf, Effect::Memory, "this rollout engine"),
        _ => leaves.state(Field::RolloutEngine, "vllm", Origin::Default, "default of SkyRL"),
    }
    for (key, old, field) in [
        ("tensor_parallel_size", "inference_engine_tensor_parallel_size", Field::RolloutTensorParallelSize),
        ("gpu_memory_utilization", "gpu_memory_utilization", Field::RolloutMemoryFraction),
        ("max_num_seqs", "max_num_seqs", Field::RolloutSequences),
    ] {
        leaves.take(&[&engine(key), &format!("generator.{old}")], field);
    }
    if let Some(leaf) = leaves.first(&[&engine("enforce_eager"), "generator.enforce_eager"]) {
        leaves.switch(Field::RolloutCudaGraphs, leaf.flag() == Some(false), leaf);
    }
    let quantized = engine("engine_init_kwargs.quantization");
    if let Some(leaf) = leaves.get(&quantized) {
        if leaf.value.contains("fp8") {
            leaves.say(Field::RolloutDtype, "fp8", leaf);
        } else {
            lack(leaves, leaf, Effect::Memory, "a rollout engine whose weights are quantized");
        }
    }
    let adapts = leaves.reading.count(Field::LoraRank).unwrap_or(0) > 0;
    let (graphs, whose) = match (skyrl_engine::is_early(leaves), adapts) {
        (true, false) => {
            ("false", "default of SkyRL from October 28, 2025 to June 22, 2026, whose keys the text has")
        }
        (true, true) => ("true", "SkyRL turns graphs on again with adapters (entrypoints/main_base.py)"),
        (false, _) => ("true", "default of SkyRL since June 22, 2026; false before"),
    };
    leaves.state(Field::RolloutCudaGraphs, graphs, Origin::Default, whose);
    defaults(
        leaves,
        SKYRL,
        &[
            (Field::RolloutTensorParallelSize, "1"),
            (Field::RolloutMemoryFraction, "0.8"),
            (Field::RolloutSequences, "1024"),
        ],
    );
    let draft = engine("speculative_config");
    let starts = |leaf: &&Leaf| leaf.path.starts_with(&draft) && !matches!(leaf.value.as_str(), "" | "null");
    if let Some(leaf) = leaves.all().iter().find(starts) {
        let what = "a draft model in the rollout engine (speculative decoding)";
        lack(leaves, leaf, Effect::Memory, what);
    }
    leaves.pass_below(&[&draft]);
    if leaves.flag("trainer.placement.colocate_all") != Some(false) {
        leaves.state(Field::RolloutSleep, "true", Origin::Derived, "trainer.placement.colocate_all");
        // Gradients are freed at the end of a step (FSDP), and move with the weights under Megatron.
        offloads(leaves, [true, true, true], "weights and states are moved to the host while rollouts run");
        return;
    }
    let elsewhere =
        leaves.flag(&engine("run_engines_locally")).or(leaves.flag("generator.run_engines_locally"))
            == Some(false);
    let count = |now: &str, old: &str| {
        leaves.whole(&engine(now)).or(leaves.whole(&format!("generator.{old}"))).unwrap_or(1)
    };
    let own = count("num_engines", "num_inference_engines")
        .saturating_mul(count("tensor_parallel_size", "inference_engine_tensor_parallel_size"))
        .saturating_mul(count("pipeline_parallel_size", "inference_engine_pipeline_parallel_size"))
        .saturating_mul(count("data_parallel_size", "inference_engine_data_parallel_size"));
    let own = if elsewhere { 0 } else { own };
    leaves.state(Field::RolloutGpus, &own.to_string(), Origin::Derived, "engines x GPUs of each");
}

/// Models besides the policy.
fn beside(leaves: &mut Leaves<'_>) {
    let shares = leaves.flag("trainer.placement.colocate_all") != Some(false);
    let penalised = leaves.flag("trainer.algorithm.use_kl_loss") != Some(false)
        || leaves.flag("trainer.algorithm.use_kl_in_reward") == Some(true);
    let with_policy = shares || leaves.flag("trainer.placement.colocate_policy_ref") != Some(false);
    let (place, note) = match () {
        () if !penalised => ("none", "neither use_kl_loss nor use_kl_in_reward"),
        () if with_policy => ("host", "the reference is offloaded to the host when idle"),
        () => ("elsewhere", "the reference is on separate accelerators"),
    };
    leaves.state(Field::RlReference, place, Origin::Derived, note);
    let other = |leaves: &Leaves<'_>, path: &str| {
        let own = leaves.text("trainer.policy.model.path").map(str::to_owned);
        leaves.get(path).filter(|leaf| own.as_deref() != Some(leaf.value.as_str())).cloned()
    };
    if let Some(leaf) = other(leaves, "trainer.ref.model.path").filter(|_| penalised) {
        lack(leaves, &leaf, Effect::Memory, "a reference whose shape differs from the policy's");
    }
    let critic = leaves.text("trainer.algorithm.advantage_estimator") == Some("gae");
    let (place, note) = match () {
        () if !critic => ("none", "the estimator has no critic"),
        () if shares => ("host", "the critic is offloaded to the host when idle"),
        () => ("elsewhere", "the critic is on separate accelerators"),
    };
    leaves.state(Field::RlCritic, place, Origin::Derived, note);
    if let Some(leaf) = other(leaves, "trainer.critic.model.path").filter(|_| critic && shares) {
        lack(leaves, &leaf, Effect::Memory, "a critic whose shape differs from the policy's");
    }
    leaves.pass_below(&["trainer.critic."]);
    lack_yes(
        leaves,
        &[
            (
                "trainer.policy.inference_only_init",
                Effect::Memory,
                "a policy without optimizer, which does not train",
            ),
            ("trainer.fully_async.simulate_training", Effect::Memory, "a simulated run that trains nothing"),
        ],
    );
}
