//! Messages: around the two projections, and of keys and values between context-parallel ranks.

use crate::anatomy::exchange::{HeadColumns, column, context, row};
use crate::anatomy::{Message, Symbols};

pub(in crate::anatomy) fn messages(x: &Symbols<'_>) -> Vec<Message> {
    let (queries, keys) = (x.a * x.d, x.k * x.d);
    let mut messages = column(x, "linear_qkv", x.h);
    messages.extend(context(x, HeadColumns { query: queries, key: keys, value: keys, output: queries }));
    messages.extend(row(x, "linear_proj"));
    messages
}
