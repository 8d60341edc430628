//! Rollouts of NeMo-RL: the engine that generates, on the policy's accelerators or on separate
//! ones, and the reference model.

use super::super::leaves::Leaves;
use super::common::{lack, offloads};
use crate::{Effect, Origin};
use shardscope_plan::Field;

pub(super) fn read(leaves: &mut Leaves<'_>) {
    leaves.state(Field::RlFramework, "nemo_rl", Origin::Derived, "NeMo-RL's keys");
    let apart = leaves.flag("policy.generation.colocated.enabled") == Some(false);
    let mut described = true;
    match leaves.get("policy.generation.backend").filter(|leaf| leaf.value != "vllm") {
        Some(leaf) if leaf.value == "sglang" => leaves.say(Field::RolloutEngine, "sglang", leaf),
        // Its memory on separate accelerators does not concern the training.
        Some(leaf) if apart => {
            described = false;
            leaves.not_estimated(
                leaf,
                "the rollout engine, on separate accelerators; training is estimated without it",
            );
        }
        Some(leaf) => lack(leaves, leaf, Effect::Memory, "this rollout engine"),
        None => leaves.state(Field::RolloutEngine, "vllm", Origin::Default, "default of NeMo-RL"),
    }
    let rules = [
        ("policy.generation.vllm_cfg.tensor_parallel_size", Field::RolloutTensorParallelSize),
        ("policy.generation.vllm_cfg.gpu_memory_utilization", Field::RolloutMemoryFraction),
        ("grpo.num_generations_per_prompt", Field::RolloutsPerPrompt),
        ("grpo.num_prompts_per_step", Field::RolloutPrompts),
    ];
    for (path, field) in rules {
        leaves.take(&[path], field);
    }
    if let Some(leaf) = leaves.get("policy.generation.vllm_cfg.enforce_eager") {
        leaves.switch(Field::RolloutCudaGraphs, leaf.flag() != Some(true), leaf);
    }
    if let Some(leaf) =
        leaves.get("policy.generation.vllm_cfg.precision").filter(|leaf| leaf.value.contains("fp8"))
    {
        leaves.say(Field::RolloutDtype, "fp8", leaf);
    }
    if apart {
        let nodes = leaves.whole("policy.generation.colocated.resources.num_nodes");
        let each = leaves.whole("policy.generation.colocated.resources.gpus_per_node");
        let per_node = leaves.reading.count(Field::GpusPerNode).unwrap_or(8);
        let all_nodes = leaves.reading.count(Field::NumNodes).unwrap_or(1);
        // On a single node, a number of GPUs generate; with several nodes, a number of nodes.
        let own = match (nodes, each) {
            (Some(nodes), each) if all_nodes > 1 => nodes.saturating_mul(each.unwrap_or(per_node)),
            (_, Some(each)) => each,
            (Some(nodes), None) => nodes.saturating_mul(per_node),
            (None, None) => 0,
        };
        let world = all_nodes.saturating_mul(per_node);
        if own > 0 && own < world {
            leaves.state(
                Field::RolloutGpus,
                &if described { own } else { 0 }.to_string(),
                Origin::Derived,
                "generation.colocated.resources",
            );
            // The remaining accelerators train.
            let rest = world - own;
            leaves.reading.keep(&|found| !matches!(found.field, Field::NumNodes | Field::GpusPerNode));
            let (left_nodes, left_each) =
                if rest.is_multiple_of(per_node) { (rest / per_node, per_node) } else { (1, rest) };
            let why = "cluster minus the accelerators for generation";
            leaves.state(Field::NumNodes, &left_nodes.to_string(), Origin::Derived, why);
            leaves.state(Field::GpusPerNode, &left_each.to_string(), Origin::Derived, why);
        }
    } else {
        leaves.state(
            Field::RolloutSleep,
            "true",
            Origin::Default,
            "co-located vLLM sleeps while the policy trains",
        );
        offloads(leaves, [true, true, true], "offload_after_refit moves the policy to the host");
    }
    // The reference is a copy of the weights on the host, swapped in to compute its log-probabilities.
    let none = leaves
        .get("loss_fn.reference_policy_kl_penalty")
        .is_some_and(|leaf| matches!(leaf.value.as_str(), "0" | "0.0"));
    leaves.state(
        Field::RlReference,
        if none { "none" } else { "host" },
        Origin::Derived,
        "NeMo-RL keeps the reference's weights on the host (use_reference_model)",
    );
    let has_critic =
        leaves.all().iter().any(|leaf| leaf.path.starts_with("value.") || leaf.path.starts_with("ppo."));
    if has_critic {
        critic(leaves);
    } else {
        leaves.state(Field::RlCritic, "none", Origin::Derived, "grpo has no critic");
    }
}

/// The critic of PPO: a DTensor model like the policy; each is offloaded to the host while the other trains,
/// whether or not the engine has separate accelerators (`nemo_rl/algorithms/ppo.py`: `finish_training`,
/// `finish_inference`, `offload_to_cpu`). A critic that is sharded or packed differently, is another model or runs
/// under Megatron is not modelled.
fn critic(leaves: &mut Leaves<'_>) {
    const SAME: &[&str] = &[
        "model_name",
        "precision",
        "train_global_batch_size",
        "max_total_sequence_length",
        "dtensor_cfg.context_parallel_size",
        "dtensor_cfg.dp_replicate_size",
        "dtensor_cfg.tensor_parallel_size",
    ];
    const OFF: &[&str] = &["dtensor_cfg.cpu_offload", "dtensor_cfg.lora_cfg.enabled"];
    const PACKS: &[&str] = &["sequence_packing.enabled", "dynamic_batching.enabled"];
    let of = |owner: &str, key: &str| leaves.text(&format!("{owner}.{key}")).unwrap_or_default();
    let yes = |owner: &str, key: &str| leaves.flag(&format!("{owner}.{key}")) == Some(true);
    let same = SAME.iter().all(|key| of("value", key) == of("policy", key));
    let plain = ["value", "policy"]
        .iter()
        .all(|owner| yes(owner, "dtensor_cfg.enabled") && !OFF.iter().any(|key| yes(owner, key)));
    let packs = |owner: &str| PACKS.iter().any(|key| yes(owner, key));
    let whole = matches!(of("policy", "dtensor_cfg.tensor_parallel_size"), "" | "1") && !packs("value");
    // With packs its size is counted in tokens: its sequences are padded to the maximum length at most.
    let length = leaves.whole("value.max_total_sequence_length").unwrap_or(1);
    let each = if packs("policy") { length } else { 1 };
    let batch = leaves.whole("value.train_micro_batch_size").map(|sequences| sequences.saturating_mul(each));
    let again = "dtensor_cfg.activation_checkpointing";
    let expressed = yes("policy", again) || !yes("value", again);
    if !(same && plain && whole && expressed) {
        let what = "a critic in addition to the policy";
        leaves.reading.not_modelled.push(crate::NotModelled::new("value", "", Effect::Memory, what));
        leaves.pass_below(&["value."]);
        return;
    }
    let why =
        "NeMo-RL moves the critic to the host while the policy trains, and the policy while the critic does";
    leaves.state(Field::RlCritic, "host", Origin::Derived, why);
    if let (Some(leaf), Some(batch)) = (leaves.get("value.train_micro_batch_size"), batch) {
        leaves.say(Field::RlCriticMicroBatch, &batch.to_string(), leaf);
    }
    if let Some(leaf) = leaves.get(&format!("value.{again}")) {
        leaves.switch(Field::RlCriticRecompute, leaf.flag() == Some(true), leaf);
    }
    if leaves.reading.value(Field::OffloadBetweenPhases).is_none() {
        offloads(leaves, [true, true, true], "offload_to_cpu moves the policy to the host");
    }
    leaves.pass_below(&["value."]);
}
