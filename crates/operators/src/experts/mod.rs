//! Router, token dispatcher, routed and shared experts.

mod held;
mod messages;
mod saved;
mod weights;
mod work;

pub(super) use held::held;
pub(super) use messages::messages;
pub(super) use saved::saved;
pub(super) use weights::{group, weights};
pub(super) use work::work;
