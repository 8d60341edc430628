//! Multi-head and grouped-query self-attention.

mod core;
mod messages;
mod saved;
mod transient;
mod weights;
mod work;

pub(super) use self::core::{Core, Operand, core};
pub(super) use messages::messages;
use saved::is_grouped;
pub(super) use saved::{residual_mask, saved};
pub(super) use transient::{forward_points, transients};
pub(super) use weights::{gate, projection, sinks, weights};
pub(super) use work::work;
