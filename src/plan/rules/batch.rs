//! The batch must come out whole.

use super::Refusals;
use crate::plan::{Field, Plan};

pub(super) fn check(plan: &Plan, refusals: &mut Refusals) {
    let (recipe, data) = (plan.recipe(), plan.layout().data);
    let (micro, global, count) =
        (recipe.micro_batch_size, recipe.global_batch_size, recipe.num_micro_batches);
    let product = micro.saturating_mul(data).saturating_mul(count);
    refusals.unless(
        product == global && count > 0,
        "global-batch",
        &[Field::GlobalBatchSize, Field::MicroBatchSize],
        || format!("{count} micro-batches of {micro} on DP {data} are {product} sequences, not {global}"),
    );
}
