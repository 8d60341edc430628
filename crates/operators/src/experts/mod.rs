//! Router, token dispatcher, routed and shared experts.

mod messages;
mod pieces;
mod products;
mod saved;
mod transient;
mod weights;
mod work;

pub(super) use messages::messages;
pub use products::ExpertProducts;
pub(super) use saved::saved;
pub(super) use transient::transients;
pub(super) use weights::{group, weights};
pub(super) use work::{routing, work};
