//! Messages.

use crate::anatomy::{Message, Symbols};

pub(in crate::anatomy) fn messages(_x: &Symbols<'_>) -> Vec<Message> {
    Vec::new()
}
