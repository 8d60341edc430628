//! The batch sizes must divide evenly.

use super::refusals::Refusals;
use crate::contradiction::Rule;
use crate::{Field, Plan};
use shardscope_source::Code;

pub(super) fn check(plan: &Plan, refusals: &mut Refusals) {
    let (recipe, data) = (plan.recipe(), plan.layout().data);
    let (micro, global, count) =
        (recipe.micro_batch_size, recipe.global_batch_size, recipe.num_micro_batches);
    // If it saturates, it equals no global batch within the bounds.
    let product = micro.saturating_mul(data).saturating_mul(count);
    let rule = &Rule {
        code: Code::GlobalBatch,
        fields: &[Field::GlobalBatchSize, Field::MicroBatchSize],
        sentence: "{} micro-batches of {} on DP {} are {} sequences, not {}",
        hint: "",
    };
    refusals.unless(product == global && count > 0, rule, &[count, micro, data, product, global]);
}
