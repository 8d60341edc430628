//! Multi-head and grouped-query self-attention.

mod messages;
mod saved;
mod weights;
mod work;

pub(super) use messages::messages;
pub(super) use saved::saved;
pub(super) use weights::{projection, sinks, weights};
pub(super) use work::work;
