//! Messages: around the two projections.

use crate::exchange::{FROM_RESIDUAL, column, row, within};
use crate::{Message, Symbols};
use shardscope_plan::RecomputeModule;

pub(crate) fn messages(x: &Symbols<'_>) -> Vec<Message> {
    let mut messages = column(x, &FROM_RESIDUAL, "linear_fc1", x.h);
    messages.extend(row(x, "linear_fc2"));
    within(messages, &[RecomputeModule::Mlp])
}
