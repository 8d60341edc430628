//! Messages: around the two projections, and of keys and values between context-parallel ranks.

use crate::context::{ContextCalls, HeadColumns, Sizes, context};
use crate::exchange::{FROM_RESIDUAL, column, one_by_one, row};
use crate::{Message, Symbols};

static CONTEXT: ContextCalls = ContextCalls::new(&Sizes {
    keys_and_values: "2·s·b·K·B",
    query: "s·b·A·B",
    key: "s·b·K·B",
    value: "s·b·K·B",
    output: "s·b·A·B",
    whole_key: "c·s·b·K·B",
    whole_value: "c·s·b·K·B",
});

pub(crate) fn messages(x: &Symbols<'_>) -> Vec<Message> {
    let (queries, keys) = (x.a * x.d, x.k * x.d);
    let columns = HeadColumns { query: queries, key: keys, value: keys, output: queries };
    // Queries, keys and values.
    let mut messages = one_by_one(x, column(x, &FROM_RESIDUAL, "linear_qkv", x.h), 3);
    messages.extend(context(x, &CONTEXT, columns));
    // What the MLP adds is reduced with it, there.
    if !x.sums_before_reducing() {
        messages.extend(row(x, "linear_proj"));
    }
    messages
}
