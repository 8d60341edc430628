//! How Automodel shards a model over tensor ranks.

use super::lacking::lack;
use super::modules::{has_recorded_plan, is_cut};
use crate::leaves::Leaves;
use crate::{Effect, Origin};
use shardscope_plan::Field;

/// Whether the model is sharded by a plan that was recorded.
pub(super) fn has_plan(leaves: &Leaves<'_>, models: &[&str]) -> bool {
    is_cut(leaves) && models.iter().find_map(|path| leaves.text(path)).is_some_and(has_recorded_plan)
}

/// DTensor's plan for the model's class, Automodel's own or transformers'
/// (`components/distributed/optimized_tp_plans.py`); its loss needs the logits of all ranks
/// (`components/loss/masked_ce.py`). On a single tensor rank no plan is applied (`parallelizer.py`).
pub(super) fn over_tensor_ranks(leaves: &mut Leaves<'_>, models: &[&str]) {
    let cut = is_cut(leaves);
    if let Some(leaf) = leaves.yes("distributed.sequence_parallel").filter(|_| cut) {
        leaves.switch(Field::SequenceParallel, true, leaf);
    }
    leaves.pass("distributed.sequence_parallel");
    if !cut {
        return;
    }
    let fused =
        leaves.text("loss_fn._target_").is_some_and(|class| class.ends_with("FusedLinearCrossEntropy"));
    if fused {
        let what = "a loss fused with an output layer that tensor ranks share";
        lack(leaves, "loss_fn._target_", Effect::Memory, what);
    }
    let custom = leaves.all().iter().any(|leaf| {
        leaf.path.starts_with("distributed.tp_plan") && !matches!(leaf.value.as_str(), "" | "null")
    });
    if custom {
        lack(leaves, "distributed.tp_plan", Effect::Memory, "a custom parallel plan");
        leaves.pass_below(&["distributed.tp_plan"]);
    }
    if has_plan(leaves, models) && !custom {
        let why = "Automodel cuts models by DTensor's column- and row-parallel styles";
        leaves.state(Field::DtensorPlan, "true", Origin::Derived, why);
    }
}
