//! Micro-batches in which verl computes log-probabilities of rollouts without gradients, by the policy and by its
//! reference. They need less memory than training unless they are larger: the logits of a larger one may be the peak.
//!
//! Sources: `verl/workers/fsdp_workers.py:compute_log_prob, compute_ref_log_prob`,
//! `verl/workers/actor/dp_actor.py:compute_log_prob`; defaults: `verl/trainer/config/rollout/rollout.yaml`,
//! `ref/ref.yaml`, which refer to the actor's.

use super::super::leaves::{Leaf, Leaves};
use super::common::lack;
use super::verl_early;
use super::verl_forks;
use super::verl_keys::at;
use super::verl_megatron::{ranks_of_a_replica, world};
use crate::Effect;
use shardscope_plan::{Field, Software};

/// The possible effect of a larger batch of tokens.
const LARGER: &str =
    "log-probability micro-batches larger than the training ones, whose logits may be the peak";

/// The models whose log-probabilities are computed.
const GROUPS: [&str; 2] = ["actor_rollout_ref.rollout.", "actor_rollout_ref.ref."];

/// Under Megatron, where the entropy of the policy's logits takes more than training does even for as many tokens: its own
/// micro-batch is stated whatever it is. A reference's takes half as much of each logit.
fn read_cut(leaves: &mut Leaves<'_>) {
    let [policy, reference] = GROUPS.map(|group| own(leaves, group));
    // Without a size verl takes the trainer's packs, or does not start.
    let pack = leaves.reading.count(Field::MaxTokensPerGpu);
    let micro = leaves.reading.count(Field::MicroBatchSize);
    let trained = match (pack, micro) {
        (Some(pack), _) => bounded(leaves, pack, of_a_step(leaves)),
        (None, Some(micro)) => micro.saturating_mul(longest(leaves)),
        // It is asked for elsewhere.
        (None, None) => return,
    };
    let tokens = policy.as_ref().map_or(trained, |own| own.tokens);
    let has_reference = matches!(leaves.reading.value(Field::RlReference), Some("device" | "host"));
    if let Some(other) = reference.filter(|other| has_reference && other.tokens > tokens) {
        // Its weights come beside the policy's where these stay.
        let beside = leaves.reading.value(Field::RlReference) == Some("host")
            && !leaves
                .reading
                .value(Field::OffloadBetweenPhases)
                .is_some_and(|moved| moved.contains("weights"));
        if beside || other.tokens.div_ceil(2) >= tokens {
            return lack(leaves, other.leaf, Effect::Memory, LARGER);
        }
    }
    match policy {
        Some(Own { sequences: Some(sequences), leaf, .. }) if pack.is_none() => {
            let note = "sequences of which log-probabilities are taken at once";
            leaves.say_noted(Field::EvaluationBatchSize, &sequences.to_string(), leaf, note);
        }
        Some(Own { tokens, leaf, .. }) if tokens != trained => {
            leaves.say_noted(Field::LogProbTokens, &tokens.to_string(), leaf, AT_ONCE);
        }
        _ => {}
    }
}

/// A group's own micro-batch on one accelerator.
struct Own<'t> {
    sequences: Option<u64>,
    tokens: u64,
    leaf: &'t Leaf,
}

fn own<'t>(leaves: &Leaves<'t>, group: &str) -> Option<Own<'t>> {
    if let Some((tokens, leaf)) = pack_of(leaves, group) {
        return Some(Own { sequences: None, tokens, leaf });
    }
    let (stated, leaf) = of_a_rank(leaves, group)?;
    let sequences = samples(leaves).map_or(stated, |all| stated.min(all)).max(1);
    Some(Own { sequences: Some(sequences), tokens: sequences.saturating_mul(longest(leaves)), leaf })
}

/// Tokens of a group's pack, if it has packs, and the place that says so: those of the actor unless others are stated, and
/// never more than all samples of a rank have.
fn pack_of<'t>(leaves: &Leaves<'t>, group: &str) -> Option<(u64, &'t Leaf)> {
    // Each follows the actor by default.
    let [own, actors] =
        [at(group, "log_prob_use_dynamic_bsz"), USES_PACKS.to_owned()].map(|path| leaves.get(&path));
    let switch =
        own.filter(|leaf| leaf.flag().is_some()).or(actors).filter(|leaf| leaf.flag() == Some(true))?;
    let stated =
        leaves.get(&at(group, "log_prob_max_token_len_per_gpu")).filter(|leaf| leaf.whole().is_some());
    let actors = leaves.get("actor_rollout_ref.actor.ppo_max_token_len_per_gpu");
    let leaf = stated.or(actors.filter(|leaf| leaf.whole().is_some())).unwrap_or(switch);
    let tokens = leaf.whole().filter(|tokens| *tokens > 1).unwrap_or(USUAL_PACK);
    Some((bounded(leaves, tokens, samples(leaves)), leaf))
}

/// The switch of the actor's packs.
const USES_PACKS: &str = "actor_rollout_ref.actor.use_dynamic_bsz";

/// Tokens of a pack where none are stated (`verl/trainer/config/actor/actor.yaml`).
const USUAL_PACK: u64 = 16_384;

/// Tokens of a pack of a rank that has this many samples: a long sample is one by itself, and few may not fill one.
fn bounded(leaves: &Leaves<'_>, tokens: u64, samples: Option<u64>) -> u64 {
    let longest = longest(leaves);
    match samples.filter(|_| longest > 0) {
        Some(samples) => tokens.max(longest).min(samples.saturating_mul(longest)),
        None => tokens,
    }
}

/// Samples of a rank in one step of the optimizer.
fn of_a_step(leaves: &Leaves<'_>) -> Option<u64> {
    let replicas = world(leaves)? / ranks_of_a_replica(leaves);
    Some(leaves.reading.count(Field::GlobalBatchSize)?.div_ceil(replicas.max(1)).max(1))
}

/// Tokens of the longest sample on one accelerator.
fn longest(leaves: &Leaves<'_>) -> u64 {
    let shared = leaves.reading.count(Field::ContextParallelSize).unwrap_or(1).max(1);
    leaves.reading.count(Field::RolloutLength).unwrap_or(0).div_ceil(shared)
}

/// Runs once the size of the actor's own micro-batches is known, and whether there is a reference.
pub(super) fn read(leaves: &mut Leaves<'_>) {
    if matches!(leaves.reading.software, Some((Software::MegatronCoreTe, _))) {
        return read_cut(leaves);
    }
    let has_reference = leaves.reading.value(Field::RlReference) != Some("none");
    let groups = GROUPS.iter().filter(|group| has_reference || **group == GROUPS[0]);
    let [mut sequences, mut tokens]: [Option<(u64, &Leaf)>; 2] = [None, None];
    for group in groups {
        match pack_of(leaves, group) {
            Some(pack) => tokens = most(tokens, Some(pack)),
            None => sequences = most(sequences, of_a_rank(leaves, group)),
        }
    }
    // Tokens that a rank trains on at once, and tokens of its longest sample.
    let pack = leaves.reading.count(Field::MaxTokensPerGpu);
    let pack = pack.map(|pack| bounded(leaves, pack, of_a_step(leaves)));
    let longest = longest(leaves);
    let micro = leaves.reading.count(Field::MicroBatchSize);
    if let Some((tokens, leaf)) = tokens {
        match (pack, micro) {
            (Some(pack), _) => packed(leaves, leaf, tokens, pack),
            (None, Some(micro)) if tokens > micro.saturating_mul(longest) => {
                leaves.say_noted(Field::LogProbTokens, &tokens.to_string(), leaf, AT_ONCE);
            }
            _ => {}
        }
    }
    let Some((sequences, leaf)) = sequences else { return };
    let sequences = samples(leaves).map_or(sequences, |all| sequences.min(all));
    if let Some(pack) = pack {
        // Fewer samples than a pack may hold are no more tokens than it has.
        if sequences.saturating_mul(longest) > pack && leaves.reading.value(Field::LogProbTokens).is_none() {
            packed(leaves, leaf, sequences.saturating_mul(longest), pack);
        }
        return;
    }
    // With padded samples the policy computes an entropy in addition to the log-probabilities; its
    // reference has not since April 2025.
    let padded = leaves.reading.value(Field::PaddingMask) == Some("true");
    let policys = of_a_rank(leaves, GROUPS[0]).map_or(0, |(own, _)| own);
    if padded && verl_early::sign(leaves).is_none() && sequences > policys.max(micro.unwrap_or(0)) {
        return lack(leaves, leaf, Effect::Memory, LARGER);
    }
    // Search-R1 also takes them of a turn's context, which may be longer than a sample is in the end.
    let turn = verl_forks::search(leaves).map_or(0, |search| search.turn);
    if turn > longest && sequences.saturating_mul(turn) > micro.unwrap_or(0).saturating_mul(longest) {
        if padded {
            return lack(leaves, leaf, Effect::Memory, LARGER);
        }
        let tokens = sequences.saturating_mul(turn).to_string();
        return leaves.say_noted(Field::LogProbTokens, &tokens, leaf, AT_ONCE);
    }
    scored(leaves, leaf, sequences);
}

/// What a number of tokens is.
const AT_ONCE: &str = "tokens of which log-probabilities are taken at once";

/// States packs of `tokens` on one accelerator, which trains on packs of `trained`.
pub(super) fn packed(leaves: &mut Leaves<'_>, leaf: &Leaf, tokens: u64, trained: u64) {
    if tokens <= trained {
        return;
    }
    if tokens.is_multiple_of(trained.max(1)) {
        let note = "packs of training's size of which log-probabilities are taken at once";
        leaves.say_noted(Field::EvaluationBatchSize, &(tokens / trained.max(1)).to_string(), leaf, note);
    } else {
        leaves.say_noted(Field::LogProbTokens, &tokens.to_string(), leaf, AT_ONCE);
    }
}

/// States a micro-batch of `size` sequences. A reader may set the one of training: they are compared once all settings
/// are known.
pub(super) fn scored(leaves: &mut Leaves<'_>, leaf: &Leaf, size: u64) {
    if leaves.reading.count(Field::MicroBatchSize).is_none_or(|own| size > own) {
        let note = "sequences of which log-probabilities are taken at once";
        leaves.say_noted(Field::EvaluationBatchSize, &size.to_string(), leaf, note);
    }
}

/// The number of sequences in one micro-batch on a rank.
fn of_a_rank<'t>(leaves: &Leaves<'t>, group: &str) -> Option<(u64, &'t Leaf)> {
    if let Some(leaf) = leaves.get(&at(group, "log_prob_micro_batch_size_per_gpu"))
        && let Some(own) = leaf.whole()
    {
        return Some((own, leaf));
    }
    let leaf = leaves.get(&at(group, "log_prob_micro_batch_size"))?;
    let replicas = world(leaves)? / ranks_of_a_replica(leaves);
    Some((leaf.whole()? / replicas.max(1), leaf))
}

/// All samples of a rank: no micro-batch has more.
fn samples(leaves: &Leaves<'_>) -> Option<u64> {
    // 0 if prompts arrive one by one (`fully_async_policy`).
    let prompts = leaves.whole("data.train_batch_size").filter(|prompts| *prompts > 0)?;
    let agents = verl_forks::search(leaves).map_or(1, |search| search.agents);
    let each = leaves.whole("actor_rollout_ref.rollout.n").unwrap_or(1).saturating_mul(agents);
    let replicas = world(leaves)? / ranks_of_a_replica(leaves);
    Some(prompts.saturating_mul(each).div_ceil(replicas.max(1)).max(1))
}

fn most<'t>(one: Option<(u64, &'t Leaf)>, other: Option<(u64, &'t Leaf)>) -> Option<(u64, &'t Leaf)> {
    one.into_iter().chain(other).max_by_key(|(size, _)| *size)
}
