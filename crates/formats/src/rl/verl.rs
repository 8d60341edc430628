//! verl: model, batch algebra, FSDP or Megatron, and the rollout engine. Keys and defaults:
//! `verl/trainer/config/ppo_trainer.yaml`, `ppo_megatron_trainer.yaml` and the files that they include; batch algebra:
//! `verl/workers/fsdp_workers.py:ActorRolloutRefWorker.__init__`, `verl/workers/actor/dp_actor.py`.

use super::super::leaves::Leaves;
use super::common::{
    ask, defaults, gathers_layers, lack, lack_yes, loaded_adapters, lora, model, offloads, on_npu, policy,
    reduces_in_fp32, shards, transformers,
};
use super::verl_keys::{ACTOR, VERL, at};
use super::verl_megatron::{ranks_of_a_replica, world};
use super::{
    verl_beside, verl_configs, verl_early, verl_forks, verl_idle, verl_megatron, verl_rounds, verl_scored,
};
use crate::{Effect, Origin};
use shardscope_plan::Field;
use shardscope_resolve::{PROJECTOR, TOWER};

/// Prefix of the rollout's keys.
const ROLLOUT: &str = "actor_rollout_ref.rollout.";

/// Reads the actor's training and its rollouts.
pub(super) fn read(leaves: &mut Leaves<'_>) {
    leaves.take_all(&[("trainer.nnodes", Field::NumNodes), ("trainer.n_gpus_per_node", Field::GpusPerNode)]);
    defaults(leaves, VERL, &[(Field::NumNodes, "1"), (Field::GpusPerNode, "8")]);
    let composed = verl_configs::composed(leaves);
    let megatron = composed
        || leaves.all().iter().any(|leaf| {
            leaf.path.starts_with("actor_rollout_ref.actor.megatron.") || leaf.value.contains("ppo_megatron")
        })
        || leaves.text("actor_rollout_ref.actor.strategy") == Some("megatron")
        || leaves.text("model_engine") == Some("megatron");
    // Since verl 0.8 one setting selects the keys and the strategy of actor, reference and
    // critic (`config/model_engine`).
    let named = leaves.get("model_engine").filter(|leaf| !matches!(leaf.value.as_str(), "dp" | "megatron"));
    if let Some(leaf) = leaves
        .get("actor_rollout_ref.actor.strategy")
        .filter(|leaf| !matches!(leaf.value.as_str(), "fsdp" | "fsdp2" | "megatron"))
        .or(named)
    {
        lack(leaves, leaf, Effect::Memory, "this training engine of verl");
    }
    leaves.pass("model_engine");
    verl_early::read(leaves, megatron);
    if megatron {
        verl_megatron::read(leaves)
    } else {
        fsdp(leaves)
    }
    policy(leaves, VERL);
    batch(leaves);
    rollout(leaves);
    verl_forks::stop(leaves);
    verl_beside::beside(leaves, megatron);
    model(leaves, &["actor_rollout_ref.model.path"]);
    if megatron {
        verl_megatron::experts(leaves);
    }
    let open = [
        (Field::MicroBatchSize, "Micro-batch size of the actor (ppo_micro_batch_size_per_gpu)?", "1"),
        (Field::SeqLength, "Prompt plus response length, in tokens?", "1024"),
    ];
    let packed = leaves.reading.value(Field::MaxTokensPerGpu).is_some();
    if !packed {
        ask(leaves, &open);
    }
    loaded_adapters(leaves, "actor_rollout_ref.model.lora_adapter_path");
    on_npu(leaves);
    verl_scored::read(leaves);
    verl_idle::pass(leaves);
}

/// FSDP's units (`verl/utils/fsdp_utils.py:get_fsdp_wrap_policy, apply_fsdp2`), including a vision tower's layers.
pub(super) fn units(leaves: &mut Leaves<'_>) {
    let why = "verl's FSDP gathers the modules that transformers does not split";
    leaves.state(Field::VisionUnits, "unsplit", Origin::Default, why);
}

/// A pattern of modules without adapters, which PEFT matches against full paths: a tower
/// with its merger below `visual`.
fn excluded(leaves: &mut Leaves<'_>) {
    let path = "actor_rollout_ref.model.exclude_modules";
    leaves.pass(path);
    let adapts = leaves.reading.value(Field::TrainType) == Some("lora");
    let Some(leaf) =
        leaves.get(path).filter(|leaf| adapts && !matches!(leaf.value.as_str(), "" | "null" | "[]"))
    else {
        return;
    };
    if leaf.value == ".*visual.*" {
        let note = "no adapter is below `visual`, so all of it is frozen";
        leaves.say_noted(Field::FrozenModules, &format!("{TOWER} {PROJECTOR}"), leaf, note);
    } else {
        lack(leaves, leaf, Effect::Model, "adapters with excluded modules");
    }
}

/// FSDP: weights in fp32 shards, gathered in bf16 (`fsdp_config.model_dtype`, `dtype`).
fn fsdp(leaves: &mut Leaves<'_>) {
    let second = leaves.text("actor_rollout_ref.actor.strategy") == Some("fsdp2");
    let frozen = "actor_rollout_ref.actor.freeze_vision_tower";
    if let Some(leaf) = leaves.yes(frozen) {
        // All of `visual`, including its merger (`verl/utils/model.py:get_vl_model_vision_tower`).
        leaves.say(Field::FrozenModules, &format!("{TOWER} {PROJECTOR}"), leaf);
    }
    leaves.pass(frozen);
    // Hooks are only installed with adapters (`verl/workers/fsdp_workers.py`); non-reentrant checkpointing needs none.
    if leaves.whole("actor_rollout_ref.model.lora_rank").unwrap_or(0) == 0 {
        let why = "verl hooks the inputs only of models with adapters";
        leaves.state(Field::VisionInputGrads, "false", Origin::Default, why);
    }
    let joined = "actor_rollout_ref.model.use_remove_padding";
    if let Some(leaf) = leaves.get(joined).filter(|leaf| leaf.flag() == Some(false)) {
        // Samples of a micro-batch are padded to the longest, with a mask.
        leaves.switch(Field::Packing, false, leaf);
        leaves.switch(Field::PaddingMask, true, leaf);
    }
    verl_early::packed(leaves);
    transformers(leaves, VERL, if second { "fsdp2" } else { "fsdp1" });
    units(leaves);
    gathers_layers(leaves, &at(ACTOR, "fsdp_config."));
    leaves.state(Field::Bf16, "true", Origin::Default, "verl computes in bf16");
    if let Some(leaf) = leaves.get("actor_rollout_ref.actor.fsdp_config.mixed_precision.reduce_dtype") {
        leaves.say(Field::ReduceDtype, &leaf.value, leaf);
    }
    reduces_in_fp32(leaves);
    let stage = leaves.get("actor_rollout_ref.actor.fsdp_config.reshard_after_forward");
    let keeps = stage.is_some_and(|leaf| leaf.flag() == Some(false));
    leaves.state(
        Field::ZeroStage,
        if keeps { "2" } else { "3" },
        Origin::Default,
        "verl's FSDP shards weights, gradients and states",
    );
    shards(leaves, "actor_rollout_ref.actor.fsdp_config.fsdp_size");
    let dtype = leaves.first(&[
        "actor_rollout_ref.actor.fsdp_config.model_dtype",
        "actor_rollout_ref.actor.fsdp_config.mixed_precision.param_dtype",
    ]);
    match dtype.filter(|leaf| leaf.path.ends_with("model_dtype")) {
        Some(leaf) => {
            leaves.say(Field::ParamsDtype, &leaf.value, leaf);
            if !matches!(leaf.value.as_str(), "fp32" | "float32") {
                leaves.say(Field::Autocast, "none", leaf);
            }
        }
        None => leaves.state(Field::ParamsDtype, "fp32", Origin::Default, "fsdp_config.model_dtype of verl"),
    }
    defaults(leaves, VERL, &[(Field::GradientCheckpointing, "true")]);
    if let Some(leaf) = leaves.get("actor_rollout_ref.model.enable_gradient_checkpointing") {
        leaves.switch(Field::GradientCheckpointing, leaf.flag() != Some(false), leaf);
    }
    if let Some(leaf) = leaves.yes("actor_rollout_ref.model.use_liger") {
        // verl turns off Liger's fused loss (`apply_liger_kernel(fused_linear_cross_entropy=False)`).
        leaves.switch(Field::LigerKernel, true, leaf);
        leaves.state(Field::LossKind, "torch", Origin::Derived, "verl runs Liger without its loss");
    }
    if let Some(leaf) = leaves.yes("actor_rollout_ref.model.use_fused_kernels") {
        let backend = leaves.get("actor_rollout_ref.model.fused_kernel_options.impl_backend");
        match backend.map_or("torch", |leaf| leaf.value.as_str()) {
            "triton" => leaves.say(Field::LossKind, "policy_kernel", backend.unwrap_or(leaf)),
            "torch" => leaves.say(Field::LossKind, "policy_rows", leaf),
            _ => lack(leaves, leaf, Effect::Memory, "this fused output layer of verl"),
        }
    }
    if let Some(leaf) = leaves
        .get("actor_rollout_ref.actor.ulysses_sequence_parallel_size")
        .filter(|leaf| leaf.whole() != Some(1))
    {
        leaves.say(Field::ContextParallelSize, &leaf.value, leaf);
        leaves.say(Field::CpCommType, "a2a", leaf);
    }
    lora(
        leaves,
        "actor_rollout_ref.model.lora_rank",
        &[("actor_rollout_ref.model.lora_alpha", Field::LoraAlpha)],
        "actor_rollout_ref.model.target_modules",
    );
    excluded(leaves);
    lack_yes(
        leaves,
        &[
            (
                "actor_rollout_ref.model.enable_activation_offload",
                Effect::Memory,
                "saved layer inputs offloaded to the host",
            ),
            ("actor_rollout_ref.model.tiled_mlp.enabled", Effect::Memory, "a tiled MLP"),
            (
                "actor_rollout_ref.actor.fsdp_config.offload_policy",
                Effect::Memory,
                "weights, gradients and optimizer states on the host while training (FSDP2 CPUOffloadPolicy)",
            ),
            (
                "actor_rollout_ref.actor.use_prefix_grouper",
                Effect::Memory,
                "prompt prefixes shared between rollouts",
            ),
        ],
    );
    // Gradients are freed at the end of the step (`optimizer.zero_grad()` at the end of update_policy).
    let moved = |leaves: &Leaves<'_>, key: &str| leaves.flag(&at(ACTOR, key)) == Some(true);
    let weights = moved(leaves, "fsdp_config.param_offload");
    let optimizer = moved(leaves, "fsdp_config.optimizer_offload");
    offloads(
        leaves,
        [weights, true, optimizer],
        "fsdp_config.param_offload and optimizer_offload; gradients are gone",
    );
}

/// `verl/workers/fsdp_workers.py` divides by the number of ranks; this is asked if the quotient is 0.
const NONE_LEFT: &str = "Micro-batch size of the actor? ppo_micro_batch_size is of all data-parallel ranks, fewer sequences than there are ranks, where verl stops";

/// `verl/workers/fsdp_workers.py` from January 5 to 27, 2025 (#80 to #136).
const TIMES_ROLLOUTS: &str = "Micro-batch size of the actor, in sequences on a rank? verl of January 2025, and TinyZero, Logic-RL and Search-R1 made of it, multiply \
     ppo_micro_batch_size by rollout.n; verl since does not";

/// An optimizer step takes a mini-batch of prompts with all their rollouts; micro-batches count sequences on one
/// data-parallel rank, on all of them together (`ppo_micro_batch_size`), or tokens.
fn batch(leaves: &mut Leaves<'_>) {
    // The engine's own lengths are the data's unless stated. Responses are cut and padded to the engine's, and prompts
    // as well where its agent loops make the samples, not where the data's tensors are handed to it
    // (`experimental/agent_loop/agent_loop.py:_agent_loop_postprocess`).
    let handed = leaves.text(&at(ROLLOUT, "mode")) == Some("sync");
    let size = |engine: &str, path: &str, own: bool| {
        let engine = at(ROLLOUT, engine);
        let stated = leaves.get(&engine).filter(|leaf| own && leaf.whole().is_some());
        stated.or_else(|| leaves.get(path)).map(|leaf| (leaf, leaf.whole()))
    };
    let sizes = [
        size("prompt_length", "data.max_prompt_length", !handed),
        size("response_length", "data.max_response_length", true),
    ];
    let search = verl_forks::search(leaves);
    let together = match sizes {
        _ if search.is_some() => search.map(verl_forks::Search::sample),
        [Some((_, Some(prompt))), Some((_, Some(response)))] => Some(prompt.saturating_add(response)),
        [Some((_, Some(one))), None] | [None, Some((_, Some(one)))] => Some(one.saturating_add(512)),
        _ => None,
    };
    // vLLM and SGLang end a response when prompt and response reach the engine's limit
    // (`vllm_async_server.py:generate`); padded sequences have the full length of both anyway.
    let fits = leaves.whole(&at(ROLLOUT, "max_model_len"));
    let limit = fits.filter(|_| leaves.reading.value(Field::Packing) != Some("false"));
    let note = match (together, limit) {
        (Some(together), Some(limit)) if limit < together => {
            "longest prompt and response that the engine takes (max_model_len)"
        }
        _ => "longest prompt and response together",
    };
    let longest = together.map(|together| limit.map_or(together, |limit| limit.min(together)));
    if let (Some((leaf, Some(prompt))), None) = (sizes[0], search) {
        leaves.say(Field::MaxPromptLength, &prompt.to_string(), leaf);
    }
    let named = sizes[1].or(sizes[0]).map(|(leaf, _)| leaf);
    // With padded samples the loss covers only the responses' logits.
    if leaves.reading.value(Field::PaddingMask) == Some("true") {
        match sizes[1] {
            Some((leaf, _)) => {
                let length = search.map_or_else(|| leaf.value.clone(), |own| own.response.to_string());
                leaves.say(Field::RolloutResponse, &length, leaf);
            }
            None => leaves.state(Field::RolloutResponse, "512", Origin::Default, "default of verl"),
        }
    }
    let dynamic = leaves.flag("actor_rollout_ref.actor.use_dynamic_bsz") == Some(true);
    if let (Some(longest), Some(leaf)) = (longest, named) {
        let length = longest.to_string();
        leaves.say_noted(Field::RolloutLength, &length, leaf, note);
        if !dynamic {
            // Sequence ranks take equal parts (`utils/ulysses.py:ulysses_pad_and_slice_inputs`), of which a plan has
            // two on each.
            let parts = leaves.whole("actor_rollout_ref.actor.ulysses_sequence_parallel_size").unwrap_or(1);
            let padded = if parts > 1 { longest.next_multiple_of(parts.saturating_mul(2)) } else { longest };
            leaves.say_noted(Field::SeqLength, &padded.to_string(), leaf, note);
        }
    } else if let Some((leaf, _)) =
        sizes.into_iter().flatten().find(|(leaf, whole)| whole.is_none() && leaf.hole.is_some())
    {
        leaves.say(Field::SeqLength, &leaf.value, leaf);
    }
    if sizes.iter().all(Option::is_none) {
        let note = "512 tokens of prompt and of response in verl";
        leaves.state(Field::RolloutLength, "1024", Origin::Default, note);
        if !dynamic {
            leaves.state(Field::SeqLength, "1024", Origin::Default, note);
        }
    }
    if dynamic {
        // Tokens of a micro-batch: a number per GPU, over the GPUs that share a sequence.
        match leaves.get("actor_rollout_ref.actor.ppo_max_token_len_per_gpu") {
            Some(leaf) => leaves.say(Field::MaxTokensPerGpu, &leaf.value, leaf),
            None => leaves.state(Field::MaxTokensPerGpu, "16384", Origin::Default, "default of verl"),
        }
    }
    leaves.take(&[&at(ROLLOUT, "n")], Field::RolloutsPerPrompt);
    defaults(leaves, VERL, &[(Field::RolloutsPerPrompt, "1")]);
    let trained = verl_rounds::prompts(leaves);
    let rollouts = leaves.reading.count(Field::RolloutsPerPrompt).unwrap_or(1);
    // No mini-batch is larger than the number of rollouts (`data.make_iterator`, early `batch.split`;
    // today's verl refuses to start).
    let agents = search.map_or(1, |own| own.state(leaves));
    let made = trained.map_or(u64::MAX, |all| all.saturating_mul(agents));
    let sequences = |prompts: u64| prompts.min(made).saturating_mul(rollouts).to_string();
    if let Some(leaf) = leaves.get("actor_rollout_ref.actor.ppo_mini_batch_size") {
        match leaf.whole() {
            Some(prompts) if prompts > made => {
                let note = "train_batch_size x rollout.n: a larger mini-batch is capped at all prompts";
                leaves.say_noted(Field::GlobalBatchSize, &sequences(prompts), leaf, note);
            }
            Some(prompts) => {
                let note = "ppo_mini_batch_size x rollout.n";
                leaves.say_noted(Field::GlobalBatchSize, &sequences(prompts), leaf, note);
            }
            None => leaves.say(Field::GlobalBatchSize, &leaf.value, leaf),
        }
    } else {
        let note = "ppo_mini_batch_size of 256, default of verl, x rollout.n";
        leaves.state(Field::GlobalBatchSize, &sequences(256), Origin::Default, note);
    }
    if dynamic {
        return;
    }
    if let Some(leaf) = leaves.get("actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu") {
        leaves.say(Field::MicroBatchSize, &leaf.value, leaf);
    } else if let Some(leaf) = leaves.get("actor_rollout_ref.actor.ppo_micro_batch_size") {
        // Sequences over all data-parallel ranks; under FSDP these are all accelerators that do not share a sequence.
        let shared = ranks_of_a_replica(leaves);
        match (leaf.whole(), world(leaves)) {
            (Some(all), Some(world)) if world >= shared => {
                let own = all / (world / shared).max(1);
                if own == 0 {
                    ask(leaves, &[(Field::MicroBatchSize, NONE_LEFT, "1")]);
                } else if rollouts > 1 && !verl_early::is_later(leaves) {
                    // A rank splits its part of a mini-batch, which may be smaller than that.
                    let part =
                        leaves.reading.count(Field::GlobalBatchSize).map(|all| all / (world / shared).max(1));
                    let of_january =
                        own.saturating_mul(rollouts).min(part.unwrap_or(u64::MAX).max(1)).to_string();
                    ask(leaves, &[(Field::MicroBatchSize, TIMES_ROLLOUTS, of_january.as_str())]);
                } else {
                    let note = "ppo_micro_batch_size over all data-parallel ranks";
                    leaves.say_noted(Field::MicroBatchSize, &own.to_string(), leaf, note);
                }
            }
            _ => {}
        }
    }
}

/// The engine that generates.
fn rollout(leaves: &mut Leaves<'_>) {
    verl_early::framework(leaves);
    match leaves.get("actor_rollout_ref.rollout.name") {
        Some(leaf) if matches!(leaf.value.as_str(), "vllm" | "sglang") => {
            leaves.say(Field::RolloutEngine, &leaf.value, leaf);
        }
        Some(leaf) if leaf.hole.is_some() => {
            leaves.state(Field::RolloutEngine, "vllm", Origin::Default, "where the text leaves it open");
        }
        Some(leaf) => lack(leaves, leaf, Effect::Memory, "this rollout engine"),
        None => leaves.state(Field::RolloutEngine, "vllm", Origin::Default, "verl's examples"),
    }
    for (key, field) in [
        ("tensor_model_parallel_size", Field::RolloutTensorParallelSize),
        ("gpu_memory_utilization", Field::RolloutMemoryFraction),
        ("max_num_seqs", Field::RolloutSequences),
    ] {
        leaves.take(&[&at(ROLLOUT, key)], field);
    }
    if let Some(leaf) = leaves.get("actor_rollout_ref.rollout.enforce_eager") {
        leaves.switch(Field::RolloutCudaGraphs, leaf.flag() == Some(false), leaf);
    }
    verl_early::sleep(leaves);
    if let Some(leaf) = leaves.get("actor_rollout_ref.rollout.quantization") {
        leaves.say(Field::RolloutDtype, "fp8", leaf);
    }
    verl_early::today(leaves);
    defaults(
        leaves,
        VERL,
        &[
            (Field::RolloutTensorParallelSize, "2"),
            (Field::RolloutMemoryFraction, "0.5"),
            (Field::RolloutSleep, "true"),
        ],
    );
    // Rollouts on separate accelerators (one_step_off_policy, fully_async_policy).
    let nodes = leaves.get("rollout.nnodes");
    let each = leaves.get("rollout.n_gpus_per_node");
    if let (Some(nodes), Some(each)) = (nodes, each)
        && let (Some(count), Some(per)) = (nodes.whole(), each.whole())
    {
        let own = count.saturating_mul(per).to_string();
        leaves.say_noted(Field::RolloutGpus, &own, each, "rollout.nnodes x rollout.n_gpus_per_node");
    }
}
