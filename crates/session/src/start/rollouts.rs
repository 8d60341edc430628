//! Reinforcement learning by verl, with the policy trained under FSDP and rollouts by vLLM on the same accelerators:
//! what its GRPO examples run (`examples/grpo_trainer/run_qwen3-8b.sh` of verl), the least sharded rollouts first.

use super::choice::Choice;
use super::said::{Named, count, say};

/// Samples of one optimizer step: 256 prompts with five rollouts each, the example's `ppo_mini_batch_size` and `rollout.n`.
const PROMPTS: u64 = 256;
const ROLLOUTS: u64 = 5;
/// Fraction of an accelerator's memory for vLLM, from the example.
const MEMORY_FRACTION: &str = "0.6";
/// What verl moves to the host during rollouts: gradients are freed by then (`fsdp_workers.py`), and the rest if its
/// `param_offload` and `optimizer_offload` say so.
const OFFLOADED: [&str; 2] = ["gradients", "weights gradients optimizer"];

/// The plans to try: rollouts on ever more tensor ranks, each with the policy left on the device, and with it moved
/// to the host meanwhile.
pub(super) fn ways(base: &Named, choice: &Choice, per_node: u64) -> Vec<Named> {
    // Tensor ranks of the engine stay within a node, where its all-reduces are fast.
    let degrees = [1, 2, 4, 8].into_iter().filter(|degree| per_node.is_multiple_of(*degree));
    degrees.flat_map(|degree| OFFLOADED.map(|offloaded| way(base, choice, degree, offloaded))).collect()
}

fn way(base: &Named, choice: &Choice, degree: u64, offloaded: &str) -> Named {
    let mut settings = base.clone();
    for (name, value) in [
        ("software", "hf_transformers"),
        ("rl_framework", "verl"),
        ("train_type", "full"),
        ("training_objective", "policy"),
        // verl stores trained weights in fp32 and computes in bf16 (`fsdp_config.model_dtype`, `mixed_precision`).
        ("params_dtype", "fp32"),
        ("bf16", "true"),
        ("reduce_dtype", "fp32"),
        ("data_parallel_engine", "fsdp1"),
        ("attn_implementation", "flash_attention_2"),
        ("gradient_checkpointing", "true"),
        ("rl_reference", "host"),
        ("rl_critic", "none"),
        ("rollout_engine", "vllm"),
        ("rollout_memory_fraction", MEMORY_FRACTION),
        ("rollout_sleep", "true"),
        ("offload_between_phases", offloaded),
    ] {
        say(&mut settings, name, value);
    }
    count(&mut settings, "rollout_tensor_parallel_size", degree);
    count(&mut settings, "rollouts_per_prompt", ROLLOUTS);
    // `base` may be for zero GPUs while the form is still empty.
    let gpus = choice.gpus.max(1);
    // Rounded up: verl refuses a batch that its ranks do not divide.
    count(&mut settings, "global_batch_size", (PROMPTS * ROLLOUTS).div_ceil(gpus) * gpus);
    settings
}
