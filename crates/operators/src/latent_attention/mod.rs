//! Multi-latent attention (DeepSeek-V2, section 2.1).

mod messages;
mod saved;
mod transient;
mod weights;
mod work;

pub(super) use messages::messages;
pub(super) use saved::{saved, sent_beside};
pub(super) use transient::transients;
pub(super) use weights::weights;
pub(super) use work::work;
