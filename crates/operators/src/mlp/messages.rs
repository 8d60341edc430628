//! Messages: around the two projections.

use crate::exchange::{FROM_RESIDUAL, column, one_by_one, row, within};
use crate::{Message, Symbols};
use shardscope_plan::RecomputeModule;

pub(crate) fn messages(x: &Symbols<'_>) -> Vec<Message> {
    let mut messages = one_by_one(x, column(x, &FROM_RESIDUAL, "linear_fc1", x.h), x.gate);
    let mut last = row(x, "linear_fc2");
    for message in &mut last {
        // A non-reentrant checkpoint recomputes only up to the last tensor that backward needs.
        message.in_layer = !x.recipe().transformers.dtensor_plan;
    }
    messages.extend(last);
    // Of an MLP that is computed again alone, DTensor gathers the input in front of it and reduces the output behind that last tensor.
    let repeated: &[RecomputeModule] =
        if x.recipe().transformers.dtensor_plan { &[] } else { &[RecomputeModule::Mlp] };
    within(messages, repeated)
}
