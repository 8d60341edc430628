//! How many prompts a round of verl's rollouts takes, and how many of them train.

use super::super::leaves::Leaves;
use shardscope_plan::Field;

/// Reads the prompts of a round; returns those that train, where they are a number.
///
/// A round takes `gen_batch_size` prompts where that is one (`ray_trainer.py:_create_dataloader`), of which DAPO's filter keeps
/// `train_batch_size`.
pub(super) fn prompts(leaves: &mut Leaves<'_>) -> Option<u64> {
    let trained = leaves.whole("data.train_batch_size");
    // 0 if prompts arrive one by one (`fully_async_policy`).
    if trained == Some(0) {
        return None;
    }
    let own = leaves.whole("data.gen_batch_size").is_some_and(|prompts| prompts > 0);
    leaves.take(&[if own { "data.gen_batch_size" } else { "data.train_batch_size" }], Field::RolloutPrompts);
    trained
}
