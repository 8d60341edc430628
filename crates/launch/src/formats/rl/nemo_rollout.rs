//! Rollouts of NeMo-RL: the engine that generates, on the policy's accelerators or beside them, and the reference model.

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
        // What it holds on accelerators of its own is nothing to the training.
        Some(leaf) if apart => {
            described = false;
            leaves.not_estimated(
                leaf,
                "the rollout engine, on accelerators of its own; the training is read without it",
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
        // Of one node, so many GPUs generate; of several, so many nodes.
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
            // What is left trains.
            let rest = world - own;
            leaves.reading.keep(&|found| !matches!(found.field, Field::NumNodes | Field::GpusPerNode));
            let (left_nodes, left_each) =
                if rest.is_multiple_of(per_node) { (rest / per_node, per_node) } else { (1, rest) };
            let why = "cluster less the accelerators that generate";
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
    // The reference is a copy of the weights on the host, swapped in for its log-probabilities.
    let none = leaves
        .get("loss_fn.reference_policy_kl_penalty")
        .is_some_and(|leaf| matches!(leaf.value.as_str(), "0" | "0.0"));
    leaves.state(
        Field::RlReference,
        if none { "none" } else { "host" },
        Origin::Derived,
        "NeMo-RL keeps the reference's weights on the host (use_reference_model)",
    );
    leaves.state(Field::RlCritic, "none", Origin::Derived, "grpo has no critic");
    if leaves.all().iter().any(|leaf| leaf.path.starts_with("value.") || leaf.path.starts_with("ppo.")) {
        leaves.reading.keep(&|found| found.field != Field::RlCritic);
        leaves.reading.not_modelled.push(crate::NotModelled::new(
            "value",
            "",
            Effect::Memory,
            "a critic beside the policy",
        ));
        leaves.pass_below(&["value."]);
    }
}
