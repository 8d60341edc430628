//! What multi-token prediction adds to a transformer layer.

mod messages;
mod saved;
mod transient;
mod weights;
mod work;

pub(super) use messages::messages;
pub(super) use saved::saved;
pub(super) use transient::transients;
pub(super) use weights::weights;
pub(super) use work::work;
