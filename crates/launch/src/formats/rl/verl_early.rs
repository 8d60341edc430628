//! verl 0.1 and 0.2, whose defaults are not today's (`verl/trainer/config/ppo_trainer.yaml` and `ppo_megatron_trainer.yaml` of
//! January 2025; TinyZero and Logic-RL have them as they were).

use super::super::leaves::{Leaf, Leaves};
use super::verl_megatron::ACTOR;
use crate::Origin;
use shardscope_plan::Field;

const WHOSE: &str = "default of verl 0.2, whose keys the text has";

/// The key that tells them, of verl before April 17, 2025 (`Move entropy to comput log probs`, #1100): one of January, or a switch that
/// had to be added to the configuration (`+trainer.val_before_train`) until it stood there (#820, March 31, 2025), since when Hydra
/// refuses that.
pub(super) fn sign<'t>(leaves: &Leaves<'t>) -> Option<&'t Leaf> {
    let is_added = |leaf: &&Leaf| leaf.added && leaf.path == "trainer.val_before_train";
    of_january(leaves).or_else(|| leaves.all().iter().find(is_added))
}

/// Gradients were offloaded by a switch that is gone since, and micro-batches counted over all ranks.
fn of_january<'t>(leaves: &Leaves<'t>) -> Option<&'t Leaf> {
    let all = leaves.all();
    let stated = |name: &str| {
        all.iter().find(|leaf| leaf.path.strip_prefix(ACTOR) == Some(name) && !leaf.value.is_empty())
    };
    let over_all =
        stated("ppo_micro_batch_size").filter(|_| stated("ppo_micro_batch_size_per_gpu").is_none());
    all.iter().find(|leaf| leaf.path.ends_with("fsdp_config.grad_offload")).or(over_all)
}

/// States what they take where nothing is said, before today's defaults are.
pub(super) fn read(leaves: &mut Leaves<'_>, megatron: bool) {
    if sign(leaves).is_none() {
        return;
    }
    let defaults = [(Field::RolloutCudaGraphs, "false"), (Field::RolloutSequences, "1024")];
    leaves.state_all(&defaults, Origin::Default, WHOSE);
    if megatron {
        if !leaves.has("actor_rollout_ref.actor.megatron.tensor_model_parallel_size") {
            leaves.state(Field::TensorModelParallelSize, "4", Origin::Default, WHOSE);
        }
        return;
    }
    // On by default since January 28, 2025 (#147).
    let january = of_january(leaves).is_some();
    if january && !leaves.has("actor_rollout_ref.model.enable_gradient_checkpointing") {
        leaves.state(Field::GradientCheckpointing, "false", Origin::Default, WHOSE);
    }
    if !leaves.has("actor_rollout_ref.model.use_remove_padding") {
        leaves.state_all(&[(Field::Packing, "false"), (Field::PaddingMask, "true")], Origin::Default, WHOSE);
    }
}
