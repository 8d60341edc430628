//! Keys of verl that change none of the figures, each group with its reason, and those that would.

use super::super::leaves::Leaves;
use super::super::names;
use super::common::{lack, lack_yes};
use crate::Effect;
use shardscope_source::{Code, Diagnostic};

/// Passes over what changes nothing, and stops at what would change a figure.
pub(super) fn pass(leaves: &mut Leaves<'_>) {
    lack_yes(
        leaves,
        &[
            (
                "actor_rollout_ref.model.mtp.enable",
                Effect::Model,
                "multi-token prediction that trains with the policy",
            ),
            ("actor_rollout_ref.actor.megatron.forward_only", Effect::Memory, "a policy that does not train"),
        ],
    );
    if let Some(leaf) = leaves.yes("reward_model.enable") {
        lack(leaves, leaf, Effect::Memory, "a reward model that shares the accelerators");
        leaves.pass_below(&["reward_model."]);
    }
    if let Some(leaf) = leaves
        .get("actor_rollout_ref.actor.optim.optimizer")
        .filter(|leaf| !leaf.value.to_ascii_lowercase().contains("adam"))
    {
        lack(leaves, leaf, Effect::Memory, "an optimizer other than Adam");
    }
    let mut count = 0_usize;
    let mut said = String::new();
    let mut place = None;
    for (why, starts) in names::section("verl").filter_map(|line| line.split_once(": ")) {
        let mut any = false;
        for leaf in leaves.all().iter().filter(|leaf| !leaf.used.get() && !leaf.value.is_empty()) {
            if starts.split(' ').any(|start| leaf.path.starts_with(start)) {
                leaf.used.set(true);
                place = place.or(leaf.span);
                count += 1;
                any = true;
            }
        }
        if any {
            said.push_str(if said.is_empty() { "" } else { "; " });
            said.push_str(why);
        }
    }
    if count > 0 {
        let message = format!("{count} keys that change no figure: {said}");
        leaves.reading.diagnostics.push(Diagnostic::note(Code::KeysLeftAside, message).at_some(place));
    }
    if leaves.all().iter().any(|leaf| !leaf.used.get()) {
        leaves.pass_below(&["reward_model.model.", "reward_model.rollout.", "reward_model.micro_batch"]);
    }
}
