//! Output layer and cross entropy, last stage.

mod messages;
pub(crate) mod policy_kernel;
mod saved;
mod transient;
mod weights;
mod work;

pub(super) use messages::messages;
pub(crate) use saved::over_ranks;
pub(super) use saved::saved;
pub(crate) use transient::distributed;
pub(super) use transient::transients;
pub(super) use weights::weights;
pub(super) use work::work;
