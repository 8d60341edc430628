//! GRPO under unsloth: TRL's trainer with unsloth's own log-probabilities, and rollouts by vLLM in the trainer's
//! process, on the weights being trained (`unsloth_zoo/vllm_utils.py:load_vllm`,
//! `rl_replacements.py:grpo_accumulated_loss`, `unsloth/models/rl.py`; unsloth and unsloth_zoo 2026.10.9).

use super::rollouts::{lack, longest};
use crate::leaves::{Leaf, Leaves};
use crate::{Effect, NotModelled, Origin};
use shardscope_plan::Field;

/// The key for a program that sets `UNSLOTH_VLLM_STANDBY`.
pub(super) const STANDBY: &str = "unsloth_vllm_standby";

const ENTROPY: &str = "entropies in unsloth's GRPO loss";

/// Messages for GRPO's arguments that differ from those with which its functions were recorded.
const OTHERWISE: [(&str, &str); 10] = [
    ("unsloth_grpo_mini_batch", "a GRPO micro-batch split into a stated number of parts under unsloth"),
    ("unsloth_logit_chunk_multiplier", "a stated number of logit chunks under unsloth"),
    ("unsloth_num_chunks", "a stated number of logit chunks under unsloth"),
    ("steps_per_generation", "a rollout round of another length under unsloth"),
    ("generation_batch_size", "a rollout round of another length under unsloth"),
    ("float8_kv_cache", "a KV cache in fp8 under unsloth"),
    (
        "vllm_importance_sampling_correction",
        "log-probabilities over the tokens that top-k or top-p leaves, for which unsloth keeps all logits",
    ),
    (
        "off_policy_mask_threshold",
        "log-probabilities over the tokens that top-k or top-p leaves, for which unsloth keeps all logits",
    ),
    ("entropy_coef", ENTROPY),
    ("use_liger_kernel", "Liger's fused loss of GRPO under unsloth"),
];

/// The variable with which unsloth's engine frees its cache during training, and the one that asks its models for all logits in place
/// of the fused loss (`unsloth/models/llama.py:CausalLM_fast_forward`), each with its key.
pub(super) const VARIABLES: [(&str, &str); 2] =
    [("UNSLOTH_VLLM_STANDBY", STANDBY), ("UNSLOTH_RETURN_LOGITS", LOGITS)];

/// The key for a program that sets `UNSLOTH_RETURN_LOGITS`.
pub(super) const LOGITS: &str = "unsloth_return_logits";

/// Whether a line sets a variable, and not to 0.
pub(super) fn is_set(text: &str, name: &str) -> bool {
    /// Lines with the variable that are examined.
    const LINES: usize = 16;
    text.match_indices(name).take(LINES).any(|(at, _)| {
        let before = text.get(..at).unwrap_or_default();
        let line = before.rsplit('\n').next().unwrap_or_default();
        let rest = text.get(at + name.len()..).and_then(|rest| rest.lines().next()).unwrap_or_default();
        let value = rest.split_once(['=', ',']).map_or("", |(_, value)| value);
        let value = value.trim_start_matches([' ', '"', '\'']);
        !line.contains('#') && value.starts_with(|sign: char| sign.is_ascii_digit() && sign != '0')
    })
}

/// Rollouts of GRPO, attributed to `leaf`.
pub(super) fn rollouts(leaves: &mut Leaves<'_>, leaf: &Leaf) {
    leaves.say(Field::TrainingObjective, "policy", leaf);
    leaves.state(Field::RlFramework, "unsloth", Origin::Derived, "GRPO under unsloth");
    leaves.state(Field::RolloutEngine, "vllm", Origin::Derived, "fast_inference");
    leaves.take(&["num_generations"], Field::RolloutsPerPrompt);
    leaves.state(Field::RolloutsPerPrompt, "8", Origin::Default, "default of unsloth");
    for (path, what) in OTHERWISE {
        let set = |leaf: &&Leaf| {
            leaf.flag() != Some(false) && !["", "None", "-1", "0", "0.0"].contains(&leaf.value.as_str())
        };
        if let Some(leaf) = leaves.get(path).filter(set) {
            lack(leaves, leaf, what);
        }
    }
    // Entropies need more memory, for all tokens.
    let quantile = |leaf: &&Leaf| leaf.value.parse::<f64>() != Ok(1.0);
    if let Some(leaf) = leaves.get("top_entropy_quantile").filter(quantile) {
        lack(leaves, leaf, ENTROPY);
    }
    if leaves.yes("fast_inference").is_none() {
        let what = "rollouts by the training model as unsloth generates them (no vLLM)";
        leaves.reading.not_modelled.push(NotModelled::new("fast_inference", "", Effect::Memory, what));
    }
    leaves.take(&["gpu_memory_utilization"], Field::RolloutMemoryFraction);
    let whose = "default of FastLanguageModel.from_pretrained";
    leaves.state(Field::RolloutMemoryFraction, "0.5", Origin::Default, whose);
    match leaves.yes(STANDBY) {
        Some(leaf) => leaves.switch(Field::RolloutSleep, true, leaf),
        None => leaves.state(Field::RolloutSleep, "false", Origin::Default, "without UNSLOTH_VLLM_STANDBY"),
    }
    leaves.state(Field::RlCritic, "none", Origin::Derived, "GRPO has no critic");
    let note = "the base model with adapters disabled";
    leaves.state(Field::RlReference, "none", Origin::Derived, note);
    let why = "the trainer takes the log-probabilities of hidden states itself";
    leaves.state(Field::LossKind, "torch", Origin::Derived, why);
    length(leaves);
    batch(leaves);
}

/// Prompt and response together, which are limited by the engine's length: `max_seq_length`.
fn length(leaves: &mut Leaves<'_>) {
    let most = leaves.reading.count(Field::SeqLength);
    let answer = leaves.get("max_completion_length").filter(|leaf| leaf.whole().is_some());
    if let Some(leaf) = answer {
        leaves.say(Field::RolloutResponse, &leaf.value, leaf);
    }
    let prompt = leaves.get("max_prompt_length").and_then(Leaf::whole);
    let sum =
        prompt.zip(answer.and_then(Leaf::whole)).and_then(|(prompt, answer)| prompt.checked_add(answer));
    if let (Some(sum), Some(leaf)) = (sum.filter(|sum| most.is_none_or(|most| *sum <= most)), answer) {
        leaves.reading.keep(&|found| found.field != Field::SeqLength);
        leaves.say_noted(Field::SeqLength, &sum.to_string(), leaf, longest());
    }
}

/// A batch that is not a multiple of the rollouts per prompt is replaced by that of one prompt
/// (`unsloth/models/rl.py`, `check_num_generations`).
fn batch(leaves: &mut Leaves<'_>) {
    let stated = |leaves: &Leaves<'_>, field, default| leaves.reading.count(field).unwrap_or(default);
    let micro = stated(leaves, Field::MicroBatchSize, 4);
    let steps = leaves.get("gradient_accumulation_steps").and_then(Leaf::whole);
    let steps = steps.unwrap_or_else(|| stated(leaves, Field::NumMicroBatches, 2));
    let ranks = stated(leaves, Field::WorldSize, 1);
    let rollouts = stated(leaves, Field::RolloutsPerPrompt, 1).max(1);
    if micro.saturating_mul(steps).saturating_mul(ranks) % rollouts != 0 {
        leaves.reading.keep(&|found| found.field != Field::MicroBatchSize);
        let rule = "unsloth makes a batch that is no multiple of num_generations one prompt's";
        leaves.state(Field::MicroBatchSize, &rollouts.to_string(), Origin::Derived, rule);
    }
}
