//! LayerNorm and RMSNorm.

mod messages;
mod saved;
mod transient;
mod weights;
mod work;

pub(super) use messages::messages;
pub(super) use saved::{alive, is_in_recomputed_mlp, is_recomputed, kept, saved, stands_alone, statistics};
pub(super) use transient::transients;
pub(super) use weights::{of_heads, post, scale, weights};
pub(super) use work::{behind, behind_of, heads, keeps_type, latent, of_router, values, work};
