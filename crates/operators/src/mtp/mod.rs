//! What multi-token prediction adds beside a transformer layer.

mod held;
mod messages;
mod saved;
mod weights;
mod work;

pub(super) use held::held;
pub(super) use messages::messages;
pub(super) use saved::saved;
pub(super) use weights::weights;
pub(super) use work::work;
