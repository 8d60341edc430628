//! DPO and ORPO under unsloth: TRL's trainers, whose functions it rewrites to compute log-probabilities
//! from last hidden states (`unsloth/models/rl_replacements.py`, unsloth and unsloth_zoo 2026.10.9, which
//! runs with TRL 0.18.2 to 1.15).

use super::behind;
use super::fused_head;
use super::rollouts::lack;
use crate::leaves::{Leaf, Leaves};
use crate::{Effect, NotModelled, Origin};
use shardscope_plan::Field;

/// The first release of TRL in which one function computes DPO's loss, and the first in which that
/// function includes the output layer.
const ONE_FUNCTION: [u64; 2] = [0, 29];
const FUSED_HEAD: [u64; 2] = [1, 15];

/// Default length of a sample (`trl/trainer/dpo_config.py`, `orpo_config.py`).
const LENGTH: u64 = 1024;

/// Messages for arguments that differ from the recorded ones, mostly because unsloth then keeps TRL's logits.
const OTHERWISE: [(&str, &str); 11] = [
    ("padding_free", "packed preference samples, for which unsloth keeps all logits"),
    ("use_logits_to_keep", "logits of completions alone under unsloth"),
    ("use_weighting", "weighted preference losses, for which unsloth keeps all logits"),
    ("rpo_alpha", "a cross-entropy term on chosen samples in addition to the preference loss"),
    ("ld_alpha", "position-weighted log-probabilities (LD-DPO) under unsloth"),
    ("use_liger_loss", "Liger's fused preference loss under unsloth"),
    ("use_liger_kernel", "Liger's fused preference loss under unsloth"),
    ("reference_free", "a preference loss without its reference under unsloth"),
    ("loss_weights", "several preference losses at once under unsloth"),
    ("f_divergence_type", "DPO with a divergence other than KL under unsloth"),
    ("sync_ref_model", "a reference model that is updated under unsloth"),
];

/// Runs once the objective is known.
pub(super) fn read(leaves: &mut Leaves<'_>) {
    if leaves.reading.value(Field::TrainingObjective) != Some("dpo") {
        return;
    }
    for (path, what) in OTHERWISE {
        let set = |leaf: &&Leaf| {
            leaf.flag() != Some(false) && !["", "None", "reverse_kl"].contains(&leaf.value.as_str())
        };
        if let Some(leaf) = leaves.get(path).filter(set) {
            lack(leaves, leaf, what);
        }
    }
    if let Some(leaf) = leaves.get("loss_type").filter(|leaf| leaf.value != "sigmoid") {
        lack(leaves, leaf, "a preference loss other than DPO under unsloth");
    }
    let odds = leaves.reading.value(Field::PreferenceLogits) == Some("orpo");
    leaves.reading.keep(&|found| found.field != Field::PreferenceLogits);
    let word = if odds { "states_orpo" } else { of_dpo(leaves) };
    let why = "unsloth takes log-probabilities of hidden states, without logits of all tokens";
    leaves.state(Field::PreferenceLogits, word, Origin::Derived, why);
    leaves.state(Field::LossKind, "torch", Origin::Derived, why);
    length(leaves);
}

/// How this release's DPO computes them. A text that names no release and has no argument of older
/// ones is assumed to run the newest.
fn of_dpo(leaves: &Leaves<'_>) -> &'static str {
    match behind::release(leaves) {
        Some(release) if release < ONE_FUNCTION => "all_states",
        Some(release) if release < FUSED_HEAD => "states",
        Some(_) => "labelled_states",
        None if fused_head::is_older(leaves) => "all_states",
        None => "labelled_states",
    }
}

/// Prompt and completion together are truncated to the trainer's length, which is capped to the
/// model's (`unsloth/models/rl.py`).
fn length(leaves: &mut Leaves<'_>) {
    let most = leaves.reading.count(Field::SeqLength).unwrap_or(u64::MAX);
    let stated = leaves.get("max_length").filter(|leaf| leaf.whole().is_some());
    if stated.and_then(Leaf::whole).unwrap_or(LENGTH) >= most {
        return;
    }
    leaves.reading.keep(&|found| found.field != Field::SeqLength);
    match stated {
        Some(leaf) => leaves.say(Field::SeqLength, &leaf.value, leaf),
        None => leaves.state(
            Field::SeqLength,
            &LENGTH.to_string(),
            Origin::Default,
            "default of TRL's max_length",
        ),
    }
}

/// Properties of the model that prevent this, once they are known.
pub(super) fn with_model(leaves: &mut Leaves<'_>, compiled: bool) {
    let of_states = matches!(
        leaves.reading.value(Field::PreferenceLogits),
        Some("states" | "all_states" | "labelled_states" | "states_orpo")
    );
    let head = leaves.reading.value(Field::ModulesToSave).is_some()
        || leaves.reading.value(Field::LoraTargetModules).is_some_and(|names| names.contains("lm_head"));
    if !of_states || compiled || head {
        let what = "a preference, reward or policy loss as unsloth compiles it";
        leaves.reading.not_modelled.push(NotModelled::new("unsloth", "", Effect::Memory, what));
    }
}
