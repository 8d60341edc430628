//! Multi-latent attention (DeepSeek-V2, section 2.1).

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
