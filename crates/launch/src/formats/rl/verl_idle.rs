//! Keys of verl that change none of the figures, each group with its reason, and those that would.

use super::super::leaves::{Leaf, Leaves};
use super::common::{idle, lack, lack_yes};
use super::verl_early;
use crate::Effect;
use shardscope_plan::{Field, Software};

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
    only(leaves);
    if let Some(leaf) = leaves
        .get("actor_rollout_ref.actor.optim.optimizer")
        .filter(|leaf| !leaf.value.to_ascii_lowercase().contains("adam"))
    {
        lack(leaves, leaf, Effect::Memory, "an optimizer other than Adam");
    }
    let turns = leaves.all().iter().find(|leaf| leaf.path.starts_with("es_manager."));
    if let Some(leaf) = turns {
        let what = "multi-turn environment trajectories, whose length RAGEN decides";
        lack(leaves, leaf, Effect::Memory, what);
    }
    entropy(leaves);
    idle(leaves, "verl");
    if leaves.all().iter().any(|leaf| !leaf.used.get()) {
        leaves.pass_below(&["reward_model.model.", "reward_model.rollout.", "reward_model.micro_batch"]);
    }
}

/// Switches that leave the training out: `trainer.val_only`, and those of programs made of verl (Absolute Zero's
/// `azr.generate_seed_dataset_only`).
fn only(leaves: &mut Leaves<'_>) {
    let tells = |leaf: &&Leaf| {
        let name = leaf.path.rsplit('.').next().unwrap_or_default();
        let starts =
            ["val", "eval", "test", "gen", "infer", "rollout"].iter().any(|word| name.starts_with(word));
        starts && name.ends_with("_only") && leaf.flag() == Some(true)
    };
    if let Some(leaf) = leaves.all().iter().find(tells) {
        leaf.used.set(true);
        lack(leaves, leaf, Effect::Memory, "evaluation or data generation, not a training run");
    }
}

/// An entropy in the loss is taken of the logits once more; without one there is none, unless it is asked for as a metric, which has
/// a graph of its own too (`verl/workers/actor/dp_actor.py`). Until verl 0.2 it was in the loss always, times its weight, and held what it
/// holds where that was 0 too. Known is what it holds under FSDP, compiled and whole.
fn entropy(leaves: &mut Leaves<'_>) {
    let zero = |value: &str| value.parse::<f64>().is_ok_and(|number| number == 0.0);
    let part = leaves.get("actor_rollout_ref.actor.entropy_coeff");
    let stated = part.filter(|leaf| leaf.hole.is_none() && !zero(&leaf.value));
    let metric = leaves.yes("actor_rollout_ref.actor.calculate_entropy");
    let early = verl_early::sign(leaves);
    let Some(leaf) = stated.or(metric).or(early) else { return };
    let joined = leaves.flag("actor_rollout_ref.model.use_remove_padding").unwrap_or(early.is_none());
    let says = |key: &str, flag: bool| leaves.flag(&format!("actor_rollout_ref.actor.{key}")) == Some(flag);
    let other = says("use_torch_compile", false)
        || says("fsdp_config.use_torch_compile", false)
        || says("entropy_checkpointing", true)
        || says("entropy_from_logits_with_chunking", true)
        || leaves.flag("actor_rollout_ref.model.use_fused_kernels") == Some(true)
        || !joined;
    if other || matches!(leaves.reading.software, Some((Software::MegatronCoreTe, _))) {
        let what = match stated.or(metric) {
            Some(_) => "the entropy of the logits next to the loss, whose softmax is saved",
            None => {
                "the entropy term that verl 0.2 (the version of this key) always has in the loss, whose softmax is saved"
            }
        };
        lack(leaves, leaf, Effect::Memory, what);
    } else {
        leaves.switch(Field::PolicyEntropy, true, leaf);
    }
}
