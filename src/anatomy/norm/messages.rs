//! Messages.

use crate::anatomy::{Message, Operator, Symbols};

pub(in crate::anatomy) fn messages(_operator: Operator, _x: &Symbols<'_>) -> Vec<Message> {
    Vec::new()
}
