//! Multi-head and grouped-query self-attention.

mod core;
mod held;
mod messages;
mod saved;
mod weights;
mod work;

pub(super) use self::core::{Core, Operand, core};
pub(super) use held::held;
pub(super) use messages::messages;
pub(super) use saved::{residual_mask, saved};
pub(super) use weights::{gate, projection, sinks, weights};
pub(super) use work::work;
