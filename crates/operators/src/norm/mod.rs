//! LayerNorm and RMSNorm.

mod held;
mod messages;
mod saved;
mod weights;
mod work;

pub(super) use held::held;
pub(super) use messages::messages;
pub(super) use saved::{alive, is_recomputed, kept, saved};
pub(super) use weights::{of_heads, post, scale, weights};
pub(super) use work::work;
